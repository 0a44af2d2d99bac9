package anser_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// greetings records the first write on each connection of a client.
type greetings struct {
	mu   sync.Mutex
	list [][]byte
}

// dial returns a function that dials in the network.
func (g *greetings) dial(network *ansertest.Network) anser.DialOption {
	return anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
		nc, err := network.Dial(ctx, kind, address)
		if err != nil {
			return nil, err
		}
		return &greeting{Conn: nc, to: g}, nil
	})
}

type greeting struct {
	net.Conn
	to   *greetings
	once sync.Once
}

func (c *greeting) Write(p []byte) (int, error) {
	c.once.Do(func() {
		c.to.mu.Lock()
		defer c.to.mu.Unlock()
		c.to.list = append(c.to.list, bytes.Clone(p))
	})
	return c.Conn.Write(p)
}

// requests returns for each connection how many calls went out with the preface.
func (g *greetings) requests(t *testing.T) (n []int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.list {
		n = append(n, 0)
		for rest := b[wire.PrefaceSize:]; len(rest) > 0; {
			h, err := wire.ParseHeader(rest)
			if err != nil {
				t.Fatal(err)
			}
			if h.Type == wire.TypeRequest {
				n[len(n)-1]++
			}
			rest = rest[wire.HeaderSize+int(h.Length):]
		}
	}
	return n
}

// countRuns returns methods that count their runs.
func countRuns(ran *atomic.Int32) map[string]handler {
	return map[string]handler{"Echo.Say": func(_ context.Context, in *[]byte) (*[]byte, error) {
		ran.Add(1)
		return in, nil
	}}
}

// Of all calls, only one that may run twice goes out before the server has answered.
func TestCallsThatGoOutWithThePreface(t *testing.T) {
	idempotent := anser.Idempotent()
	watching := anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { return nil }})
	say := func(text string, opts ...anser.CallOption) func(c *anser.Client) error {
		return func(c *anser.Client) error {
			_, err := call(context.Background(), c, "Echo.Say", text, opts...)
			return err
		}
	}
	for name, test := range map[string]struct {
		early int
		opts  []anser.DialOption
		call  func(c *anser.Client) error
	}{
		"idempotent":               {1, nil, say("x", idempotent)},
		"of an idempotent client":  {1, []anser.DialOption{idempotent}, say("x")},
		"with a deadline":          {1, nil, say("x", idempotent, anser.Timeout(time.Second))},
		"with a credential":        {1, []anser.DialOption{showing("a"), anser.InsecureCredentials()}, say("x", idempotent)},
		"as large as goes":         {1, nil, say(strings.Repeat("x", 1024-wire.RequestSize), idempotent)},
		"one byte more":            {0, nil, say(strings.Repeat("x", 1024-wire.RequestSize+1), idempotent)},
		"not idempotent":           {0, nil, say("x")},
		"only sent once":           {0, nil, say("x", idempotent, anser.Attempts(1))},
		"with a key":               {0, nil, say("x", idempotent, anser.IdempotencyKey("k"))},
		"compressed":               {0, []anser.DialOption{anser.Compress(compress.Gzip())}, say("x", idempotent)},
		"with checksums":           {0, []anser.DialOption{anser.Checksums()}, say("x", idempotent)},
		"observers may refuse it":  {0, []anser.DialOption{watching}, say("x", idempotent)},
		"several attempts at once": {0, nil, say("x", idempotent, anser.WithFailMode(anser.Fork))},
		"oneway": {0, []anser.DialOption{idempotent}, func(c *anser.Client) error {
			return c.Send(context.Background(), "Echo.Say", text("x"))
		}},
		"future": {0, []anser.DialOption{idempotent}, func(c *anser.Client) error {
			_, err := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("x")).Wait()
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var ran atomic.Int32
				serve(t, network.Listen("a:1"), countRuns(&ran), anser.Deduplicate())
				var sent greetings
				c := dial(t, "a:1", append(test.opts, sent.dial(network), anser.Conns(1))...)
				if err := test.call(c); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := sent.requests(t); len(n) != 1 || n[0] != test.early || ran.Load() != 1 {
					t.Errorf("calls with the preface of each connection: %v, want %d; it ran %d times", n, test.early, ran.Load())
				}
				if _, err := call(context.Background(), c, "Echo.Say", "again", idempotent); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server that does not take the connection has not run the call that came with the preface, and
// the client knows it. Where it cannot know, the outcome is unknown.
func TestOutcomeOfACallWithThePreface(t *testing.T) {
	frames := func(list ...[]byte) []byte { return slices.Concat(list...) }
	closing := func(r wire.Reason) []byte { return frames(wire.AppendPreface(nil), wire.AppendClose(nil, r, "no")) }
	broken := wire.AppendSettings(wire.AppendPreface(nil), wire.DefaultSettings())
	broken[wire.PrefaceSize+4] = byte(wire.TypePing)
	for name, test := range map[string]struct {
		answer  []byte
		outcome anser.Outcome
	}{
		"full":                    {closing(wire.Overload), anser.NotSent},
		"stops":                   {closing(wire.Normal), anser.NotSent},
		"unauthenticated":         {closing(wire.Unauthenticated), anser.NotSent},
		"older version":           {closing(wire.BadVersion), anser.NotSent},
		"of another version":      {[]byte{0xA5, 'N', 'S', 'R', 2, 0, 0, 0}, anser.NotSent},
		"of another protocol":     {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), anser.NotSent},
		"says it came too late":   {[]byte("HTTP/1.1 408 Request Timeout\r\n\r\n"), anser.NotSent},
		"killed":                  {nil, anser.OutcomeUnknown},
		"killed in its preface":   {wire.AppendPreface(nil)[:5], anser.OutcomeUnknown},
		"killed in its settings":  {broken[:wire.PrefaceSize+5], anser.OutcomeUnknown},
		"breaks the protocol":     {broken, anser.OutcomeUnknown},
		"killed after it greeted": {wirepeer.Hello(wire.DefaultSettings()), anser.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				l := network.Listen("a:1")
				arrived := make(chan wire.Type, 1)
				go func() {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					defer nc.Close()
					p := wirepeer.New(nc)
					p.ReadHello()
					r, _ := p.NextOf(wire.TypeRequest)
					arrived <- r.Type
					nc.Write(test.answer)
				}()
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				_, err := call(context.Background(), c, "Echo.Say", "x", anser.Idempotent(), anser.WithFailMode(anser.Failfast))
				if got := <-arrived; got != wire.TypeRequest {
					t.Fatalf("%s came with the preface", got)
				}
				if e := fault(t, err); e.Outcome != test.outcome {
					t.Errorf("%v: %s, want %s", err, e.Outcome, test.outcome)
				}
				l.Close()
			})
		})
	}
}

// Servers of this version refuse a connection without running what came with the preface.
func TestServersRefuseCallsWithThePreface(t *testing.T) {
	for name, test := range map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
		full   bool
	}{
		"full":                {server: []anser.ServerOption{anser.MaxConns(1)}, full: true},
		"wants a credential":  {server: []anser.ServerOption{anser.Authenticate(new(door))}},
		"refuses it":          {server: []anser.ServerOption{anser.Authenticate(new(door))}, client: []anser.DialOption{anser.InsecureCredentials(), wrongWord}},
		"an observer refuses": {server: []anser.ServerOption{anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { return context.Canceled }})}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var ran atomic.Int32
				serve(t, network.Listen("a:1"), countRuns(&ran), test.server...)
				if test.full {
					defer rawClient(t, network, "a:1").Close()
				}
				var sent greetings
				c := dial(t, "a:1", append(test.client, sent.dial(network))...)
				_, err := call(context.Background(), c, "Echo.Say", "x", anser.Idempotent(), anser.WithFailMode(anser.Failfast))
				if e := fault(t, err); e.Outcome != anser.NotSent {
					t.Errorf("%v: %s, want %s", err, e.Outcome, anser.NotSent)
				}
				synctest.Wait()
				if n := sent.requests(t); len(n) != 1 || n[0] != 1 || ran.Load() != 0 {
					t.Errorf("calls with the preface of each connection: %v; %d ran", n, ran.Load())
				}
			})
		})
	}
}

var wrongWord = anser.Credentials(func(context.Context) (anser.Credential, error) {
	return anser.Credential{Scheme: "test", Data: []byte("another:x")}, nil
})

// A server that demands checksums refuses a connection whose client has not offered them. The next
// connection has them at once, and the call runs once.
func TestChecksumsAfterACallWithThePreface(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		l := network.Listen("a:1")
		serve(t, l, countRuns(&ran), anser.Checksums())
		var sent greetings
		c := dial(t, "a:1", sent.dial(network), anser.Conns(1), anser.Idempotent())
		began := time.Now()
		for range 2 {
			if _, err := call(context.Background(), c, "Echo.Say", "x"); err != nil {
				t.Fatal(err)
			}
		}
		if n := sent.requests(t); !slices.Equal(n, []int{1, 0}) || ran.Load() != 2 || time.Since(began) != 0 {
			t.Fatalf("calls with the preface of each connection: %v; %d ran, after %v", n, ran.Load(), time.Since(began))
		}
		l.Kill()
		serve(t, network.Listen("a:1"), countRuns(&ran), anser.Checksums())
		if _, err := call(context.Background(), c, "Echo.Say", "x"); err != nil {
			t.Fatal(err)
		}
		if n := sent.requests(t); !slices.Equal(n, []int{1, 0, 0}) {
			t.Errorf("calls with the preface of each connection: %v", n)
		}
	})
}

// A call that was lost with its connection before the server answered is tried until its deadline,
// as one that was not sent; but it goes out with a preface only once, and that was an attempt.
func TestCallWithThePrefaceIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		const losses = 6 // more than a call has attempts
		go func() {
			for i := 0; ; i++ {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				p := wirepeer.New(nc)
				p.ReadHello()
				if i < losses {
					nc.Close()
					continue
				}
				p.Send(wirepeer.Hello(wire.DefaultSettings()))
				r, _ := p.NextOf(wire.TypeRequest)
				if n := r.Body[6]; n != 1 {
					t.Errorf("it arrives as attempt %d, want 1", n)
				}
				p.Send(wirepeer.Reply(r.ID, []byte("at last")))
				p.NextOf(wire.TypeClose)
				nc.Close()
			}
		}()
		var sent greetings
		c := dial(t, "a:1", sent.dial(network), anser.Conns(1), anser.Timeout(time.Hour))
		out, err := call(context.Background(), c, "Echo.Say", "x", anser.Idempotent())
		if n := sent.requests(t); err != nil || out != "at last" || len(n) != losses+1 || n[0] != 1 || slices.Max(n[1:]) != 0 {
			t.Errorf("%q, %v; calls with the preface of each connection: %v", out, err, n)
		}
		c.Close()
		l.Close()
	})
}

// A server that is killed and started again at its address gets a call with a key only if the one
// before cannot have run it: the call waits for the server's life.
func TestKeyWaitsForTheSettings(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		go func() {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			p := wirepeer.New(nc)
			p.ReadHello()
			nc.SetReadDeadline(time.Now().Add(time.Second))
			if r, err := p.Next(); err == nil {
				t.Errorf("%s came before the settings", r.Type)
			}
			l.Kill()
		}()
		var ran atomic.Int32
		var sent greetings
		c := dial(t, "a:1", sent.dial(network), anser.Conns(1), anser.Idempotent())
		time.AfterFunc(1500*time.Millisecond, func() { countOnce(t, network, "a:1", &ran, 0) }) // before the client gives up
		if _, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("k")); err != nil || ran.Load() != 1 {
			t.Errorf("%v; it ran %d times", err, ran.Load())
		}
	})
}

// The caller of a call that has gone out with the preface may leave before the server has answered:
// the server is told when it does.
func TestLeavingACallWithThePreface(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		cancelled := make(chan uint64, 1)
		go func() {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			p := wirepeer.New(nc)
			p.ReadHello()
			time.Sleep(2 * time.Second)
			p.Send(wirepeer.Hello(wire.DefaultSettings()), wirepeer.Reply(1, []byte("too late")))
			r, _ := p.NextOf(wire.TypeCancel)
			cancelled <- r.ID
			r, _ = p.NextOf(wire.TypeRequest)
			p.Send(wirepeer.Reply(r.ID, []byte("in time")))
			p.NextOf(wire.TypeClose)
		}()
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Idempotent())
		began := time.Now()
		_, err := call(context.Background(), c, "Echo.Say", "x", anser.Timeout(time.Second))
		wantFault(t, err, anser.DeadlineExceeded, anser.OutcomeUnknown)
		if d := time.Since(began); d != time.Second {
			t.Errorf("it ended after %v", d)
		}
		if id := <-cancelled; id != 1 {
			t.Errorf("CANCEL for the call %d", id)
		}
		if out, err := call(context.Background(), c, "Echo.Say", "x"); out != "in time" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
		c.Close()
		l.Close()
	})
}

// The server may answer at the moment at which the time of the call is over: the call ends once,
// and the connection remains usable.
func TestAnswerAtTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer nc.Close()
					p := wirepeer.New(nc)
					p.ReadHello()
					time.Sleep(time.Second)
					p.Send(wirepeer.Hello(wire.DefaultSettings()))
					for {
						r, err := p.NextOf(wire.TypeRequest)
						if err != nil {
							return
						}
						p.Send(wirepeer.Reply(r.ID, r.Body[wire.RequestSize:]))
					}
				}()
			}
		}()
		for range 200 {
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Idempotent())
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if out, err := call(ctx, c, "Echo.Say", "first"); err == nil && out != "first" {
				t.Errorf("%q", out)
			} else if err != nil {
				wantFault(t, err, anser.DeadlineExceeded, anser.OutcomeUnknown)
			}
			cancel()
			if out, err := call(context.Background(), c, "Echo.Say", "second"); err != nil || out != "second" {
				t.Errorf("%q, %v", out, err)
			}
			c.Close()
		}
		l.Close()
	})
}
