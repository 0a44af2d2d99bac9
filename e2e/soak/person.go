package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/registry"
)

// longest bounds calls without a deadline of their own. A call that takes longer is a failure. It
// is long, since this process may be starved of CPU time.
const longest = 10 * time.Minute

// A person is a client with options that are drawn at random, and its callers.
type person struct {
	client *anser.Client
	serves *anser.Server // what the servers call, or nil
	fleet  *fleet
	tally  *tally
	mail   *mail
	once   bool // the client's fail mode makes a single attempt, or stays with one instance
}

// dial makes a client of the fleet.
func dial(r *rand.Rand, f *fleet, scheme registry.Scheme) (*person, error) {
	p := &person{fleet: f, tally: f.tally, mail: f.mail}
	names := balance.Names()
	b, err := balance.ByName(names[r.IntN(len(names))], balance.Here{Zone: "here", Latitude: 50, Longitude: 14})
	if err != nil {
		return nil, err
	}
	opts := []anser.DialOption{silent, scheme, anser.NoSnapshot(), anser.Balancer(b), anser.Timeout(longest)}
	if f.identity != nil {
		opts = append(opts, anser.TLS(f.identity.client()))
	}
	switch r.IntN(8) {
	case 0:
		opts = append(opts, anser.WithFailMode(anser.Failfast))
		p.once = true
	case 1:
		// The same instance may be gone for good, and is tried all the same for as long as the
		// call lasts.
		opts = append(opts, anser.WithFailMode(anser.Failtry), anser.Timeout(time.Minute))
		p.once = true
	case 2:
		opts = append(opts, anser.Conns(1+r.IntN(3)))
	case 3:
		opts = append(opts, anser.SlowStart(time.Second))
	}
	if r.IntN(3) == 0 {
		opts = append(opts, compression(r))
	}
	if r.IntN(3) == 0 {
		p.serves = anser.NewServer(silent, anser.NoSignals())
		if err := serveClient(p.serves, f.tally); err != nil {
			return nil, err
		}
		opts = append(opts, anser.Handlers(p.serves))
	}
	p.client, err = anser.Dial(scheme.Name+"://"+f.service, opts...)
	return p, err
}

// close closes the client, whose callers have returned.
func (p *person) close() error {
	err := p.client.Close()
	if p.serves != nil {
		p.serves.Close()
	}
	p.tally.clients.Add(1)
	return err
}

// live makes calls with that number of callers until ctx ends.
func (p *person) live(ctx context.Context, seeds *rand.Rand, callers int) {
	var wg sync.WaitGroup
	for range callers {
		k := &caller{person: p, r: rand.New(rand.NewPCG(seeds.Uint64(), seeds.Uint64()))}
		wg.Go(func() {
			for ctx.Err() == nil {
				k.step()
			}
		})
	}
	wg.Wait()
}

// compression draws an option for it.
func compression(r *rand.Rand) anser.DialCallOption {
	algorithms := append([]compress.Compressor{nil}, all.Compressors()...)
	return anser.Compress(algorithms[r.IntN(len(algorithms))], anser.CompressMode(r.IntN(3)))
}

// A caller makes consecutive calls, or some concurrently. It is used by one goroutine.
type caller struct {
	*person
	r *rand.Rand
}

// step makes a call, or several that belong together, and waits for them.
func (k *caller) step() {
	switch n := k.r.IntN(100); {
	case n < 40:
		k.unary()
	case n < 48:
		k.raw()
	case n < 65:
		k.futures()
	case n < 78:
		k.oneway()
	case n < 90:
		k.stream()
	case n < 93:
		k.fanout()
	case n < 98:
		k.push()
	case n < 99:
		k.file()
	default:
		time.Sleep(time.Duration(k.r.IntN(20)) * time.Millisecond) // so that connections fall silent
	}
}

// wish draws a random wish.
func (k *caller) wish() (Wish, expected) {
	w := Wish{Want: size(k.r)}
	may := expected{once: k.once}
	switch n := k.r.IntN(100); {
	case n < 20:
		w.Hold = time.Duration(k.r.IntN(3000)) * time.Microsecond
	case n < 24:
		w.Fail = true
	case n < 26:
		w.Panic, may.panics = true, true
	}
	return w, may
}

// patience draws a context: most of the time one without an end, sometimes with a deadline that is
// most likely too short, or with a cancel to come.
func (k *caller) patience(may *expected) (context.Context, context.CancelFunc) {
	ctx := context.Background()
	soon := time.Duration(k.r.IntN(4000)) * time.Microsecond
	switch k.r.IntN(8) {
	case 0:
		may.gaveUp = true
		return context.WithTimeout(ctx, soon)
	case 1:
		may.gaveUp = true
		ctx, cancel := context.WithCancel(ctx)
		t := time.AfterFunc(soon, cancel)
		return ctx, func() { t.Stop(); cancel() }
	case 2:
		may.gaveUp = true
		ctx, cancel := context.WithCancel(ctx)
		if k.r.IntN(4) == 0 {
			cancel() // before the call
		}
		return ctx, cancel
	}
	return context.WithCancel(ctx)
}

// options draws the options of a call. The fail modes that send a call several times are for
// idempotent methods.
func (k *caller) options(may *expected, idempotent bool) []anser.CallOption {
	var opts []anser.CallOption
	if k.r.IntN(4) == 0 {
		opts = append(opts, compression(k.r))
	}
	if k.r.IntN(4) == 0 {
		opts = append(opts, anser.Codec(jsonCodec))
	}
	if k.r.IntN(3) == 0 {
		opts = append(opts, anser.HashKey(fmt.Sprint("key ", k.r.IntN(100))))
	}
	if idempotent {
		opts = append(opts, anser.Idempotent())
		switch k.r.IntN(4) {
		case 0:
			opts = append(opts, anser.WithFailMode(anser.Backup), anser.BackupAfter(time.Duration(k.r.IntN(2000))*time.Microsecond))
			may.once = false
		case 1:
			opts = append(opts, anser.WithFailMode(anser.Fork), anser.Forks(2+k.r.IntN(2)))
			may.once = true
		}
	}
	return opts
}

var jsonCodec = new(codec.JSON)
