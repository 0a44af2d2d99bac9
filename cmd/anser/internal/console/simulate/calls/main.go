// Command calls measures what a console costs a system whose instances call each other: 100
// services with ten instances each in one process, each with a server, a client, a meter and an
// admin page, and a console with viewers. The profile that it writes has a label for the calls,
// the pages and the console:
//
//	go run ./cmd/anser/internal/console/simulate/calls -o calls.prof
//	go tool pprof -tags calls.prof
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/internal/sysusage"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

var (
	services  = flag.Int("services", 100, "services")
	instances = flag.Int("instances", 10, "instances of each service")
	rate      = flag.Int("rate", 100, "calls per second of each instance")
	viewers   = flag.Int("viewers", 1, "viewers")
	length    = flag.Duration("for", 20*time.Second, "time of the measurement")
	output    = flag.String("o", "calls.prof", "file of the profile")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// labelled runs f, and what it starts, with a label in profiles.
func labelled(part string, f func()) {
	pprof.Do(context.Background(), pprof.Labels("part", part), func(context.Context) { f() })
}

func run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reg := registry.NewMemory()
	n := *services * *instances
	addresses := make([]string, n)
	meters := make([]*telemetry.Meter, n)
	var err error
	for i := range n {
		service := fmt.Sprintf("group%d.service-%03d", i / *instances % 5, i / *instances)
		labelled("calls", func() { addresses[i], meters[i], err = serve() })
		if err != nil {
			return err
		}
		in := registry.Instance{Service: service, ID: fmt.Sprintf("%s-%d", service, i%*instances), Address: addresses[i], Tags: make(map[string]string)}
		labelled("pages", func() { in.Tags[admin.Tag], err = page(meters[i], in.ID) })
		if err != nil {
			return err
		}
		if err := reg.Register(ctx, in); err != nil {
			return err
		}
	}
	var calls atomic.Int64
	labelled("calls", func() {
		for i := range n { // of the same number of the next service
			if err = call(ctx, addresses[(i+*instances)%n], meters[i], &calls, time.Duration(i)); err != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	var s *site.Site
	labelled("console", func() {
		s, err = site.Open(ctx, site.Options{
			Listen: "127.0.0.1:0", Registry: site.Registry{Name: "memory://", Kind: "memory", Resolver: reg}, Dial: target.Caller(target.Source{}),
		})
		if err == nil {
			go s.Serve(ctx)
		}
	})
	if err != nil {
		return err
	}
	for range *viewers {
		go labelled("viewers", func() { view(ctx, s.URL()) })
	}
	time.Sleep(10 * time.Second) // the first readings
	file, err := os.Create(*output)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	before, used, began := calls.Load(), sysusage.CurrentProcess().CPU, time.Now()
	time.Sleep(*length)
	took := time.Since(began).Seconds()
	pprof.StopCPUProfile()
	fmt.Printf("%.0f calls/s, %.2f processors for everything\n", float64(calls.Load()-before)/took, float64(sysusage.CurrentProcess().CPU-used)/1e9/took)
	return nil
}

// serve starts a server.
func serve() (string, *telemetry.Meter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	meter := telemetry.New()
	s := anser.NewServer(meter.Option())
	for _, name := range [...]string{"Items.Get", "Items.List", "Items.Put"} {
		anser.Handle(s, name, func(_ context.Context, in *[2]int) (*int, error) { return &in[0], nil })
	}
	go s.Serve(l)
	return l.Addr().String(), meter, nil
}

// page starts an admin page.
func page(meter *telemetry.Meter, name string) (string, error) {
	p, err := admin.New(meter, admin.Name(name))
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go p.Serve(l)
	return "http://" + l.Addr().String() + "/", nil
}

// call begins to call a server.
func call(ctx context.Context, address string, meter *telemetry.Meter, calls *atomic.Int64, shift time.Duration) error {
	c, err := anser.Dial(address, meter.Option())
	if err != nil {
		return err
	}
	go func() {
		defer c.Close()
		time.Sleep(shift * time.Millisecond)
		tick := time.NewTicker(time.Second / time.Duration(*rate))
		defer tick.Stop()
		names := [...]string{"Items.Get", "Items.List", "Items.Put"}
		for k := 0; ctx.Err() == nil; k++ {
			<-tick.C
			if _, err := anser.Call[int](ctx, c, names[k%len(names)], &[2]int{k, 1}); err == nil {
				calls.Add(1)
			}
		}
	}()
	return nil
}

// view follows the console.
func view(ctx context.Context, url string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"api/events", nil)
	if err != nil {
		return
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Print(err)
		return
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
}
