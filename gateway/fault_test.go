package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
)

// running is a gateway that a test ends itself.
type running struct {
	*gateway.Gateway
	stop func()
	done chan error
}

func startAt(t *testing.T, r registry.Resolver, addr string, c *gateway.Config) *running {
	t.Helper()
	g, err := gateway.New(c, gateway.Options{
		Registry: r, Server: []anser.ServerOption{anser.NoSignals()}, Logger: slog.New(slog.DiscardHandler), Look: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	awaitThat(t, "the port is taken", func() bool {
		l, err = net.Listen("tcp", addr)
		return err == nil
	})
	ctx, stop := context.WithCancel(context.Background())
	x := &running{g, stop, make(chan error, 1)}
	go func() { x.done <- g.Serve(ctx, l) }()
	return x
}

// end ends the gateway as SIGTERM does.
func (x *running) end() {
	x.stop()
	<-x.done
}

// kill ends the gateway at once.
func (x *running) kill() {
	x.Server().Close()
	x.stop()
	<-x.done
}

// load calls until it is stopped, and returns the number of calls and the errors.
func load(t *testing.T, callers int, call func(ctx context.Context) error) (stop func() (calls int64, failed []error)) {
	var n atomic.Int64
	var mu sync.Mutex
	var failed []error
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range callers {
		wait.Go(func() {
			for ctx.Err() == nil {
				if err := call(t.Context()); err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
				n.Add(1)
			}
		})
	}
	return func() (int64, []error) {
		cancel()
		wait.Wait()
		return n.Load(), failed
	}
}

// multiply is a caller over gRPC that knows several gateways.
func multiply(t *testing.T, opts []anser.CallOption, addresses ...string) func(ctx context.Context) error {
	t.Helper()
	c, err := anser.Dial("grpc://"+strings.Join(addresses, ","), protocols.GRPC(), anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	opts = append(opts, anser.Codec(codec.Forwarding(codec.ProtobufID, "protobuf")))
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		out := new(codec.Encoded)
		if err := c.Call(ctx, "Arith.Mul", &codec.Encoded{Codec: codec.ProtobufID, Data: []byte{8, 7, 16, 8}}, out, opts...); err != nil {
			return err
		}
		if !bytes.Equal(out.Data, []byte{8, 56}) {
			return fmt.Errorf("reply %v", out.Data)
		}
		return nil
	}
}

func none(t *testing.T, stop func() (int64, []error)) {
	t.Helper()
	n, failed := stop()
	if n == 0 {
		t.Error("there were no calls")
	}
	if len(failed) > 0 {
		t.Errorf("%d of %d calls have failed: %v", len(failed), n, failed[0])
	}
}

// A new configuration costs no request, be it a call or one of HTTP.
func TestReloadUnderLoad(t *testing.T) {
	back, l := new(http.Server), listen(t)
	back.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "back") })
	go back.Serve(l)
	defer back.Close()
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith", Version: "1"}, arith)
	configs := []*gateway.Config{
		parse(t, `routes: [{path: /back, to: [{url: "http://`+l.Addr().String()+`"}]}]`),
		parse(t, `routes: [{path: /back, to: [{url: "http://`+l.Addr().String()+`", weight: 3}]}, {path: /Arith, to: [{service: arith, version: "1"}]}]`+"\nlimits: {caller: {per_second: 1e6}}"),
	}
	g, addr := start(t, r, configs[0])
	await(t, g, "arith", 1)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	ends := []func() (int64, []error){
		load(t, 2, multiply(t, nil, addr)),
		load(t, 2, func(ctx context.Context) error {
			req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+addr+"/back/x", nil)
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "back" {
				return fmt.Errorf("%d %q %w", resp.StatusCode, b, err)
			}
			return nil
		}),
	}
	for i := range 60 {
		if err := g.Apply(configs[(i+1)%2]); err != nil {
			t.Fatal(err)
		}
		before := g.Stats()
		awaitThat(t, "nothing is served any more", func() bool {
			now := g.Stats()
			return now.Calls > before.Calls && now.Proxied > before.Proxied
		})
	}
	for _, end := range ends {
		none(t, end)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// With two gateways, no call fails while they are restarted in turns; nor while they are killed, if
// the calls may be repeated.
func TestTwoGateways(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	var addresses []string
	var pair []*running
	for range 2 {
		l := listen(t)
		addresses = append(addresses, l.Addr().String())
		l.Close()
		x := startAt(t, r, addresses[len(addresses)-1], new(gateway.Config))
		await(t, x.Gateway, "arith", 1)
		pair = append(pair, x)
	}
	restart := func(i int, end func(*running)) {
		end(pair[i])
		pair[i] = startAt(t, r, addresses[i], new(gateway.Config))
		await(t, pair[i].Gateway, "arith", 1)
		before := pair[i].Stats().Calls
		awaitThat(t, "no call comes to the gateway again", func() bool { return pair[i].Stats().Calls > before })
	}
	stop := load(t, 4, multiply(t, nil, addresses...))
	for i := range 6 {
		restart(i%2, (*running).end)
	}
	none(t, stop)
	stop = load(t, 4, multiply(t, []anser.CallOption{anser.Idempotent()}, addresses...))
	for i := range 6 {
		restart(i%2, (*running).kill)
	}
	none(t, stop)
	for _, x := range pair {
		x.end()
	}
}

// An instance that does not answer costs its callers their deadline, and others nothing. What a
// full gateway cannot take it refuses at once, and forwards nothing.
func TestSlowUpstream(t *testing.T) {
	r := registry.NewMemory()
	hold := make(chan struct{})
	var running atomic.Int64
	serve(t, r, registry.Instance{Service: "slow"}, func(s *anser.Server) {
		anser.Handle(s, "Slow.Wait", func(ctx context.Context, _ *anser.None) (*anser.None, error) {
			running.Add(1)
			defer running.Add(-1)
			select {
			case <-hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return new(anser.None), nil
		})
	})
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, parse(t, "timeout: 100ms\nlimits: {calls: 3, service: 3}"))
	await(t, g, "slow", 1)
	await(t, g, "arith", 1)
	if status, body := post(t, "http://"+addr+"/slow/Slow.Wait", "{}"); status != 504 || !strings.Contains(body, "deadline_exceeded") {
		t.Errorf("%d %s", status, body)
	}
	awaitThat(t, "the instance was not told that the caller is gone", func() bool { return running.Load() == 0 })
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			if status, body := post(t, "http://"+addr+"/slow/Slow.Wait", "{}", "Request-Timeout", "60"); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	awaitThat(t, "the calls do not run", func() bool { return running.Load() == 3 })
	calls := g.Stats().Calls
	status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`)
	if status != 429 || !strings.Contains(body, "refused") || g.Stats().Calls != calls {
		t.Errorf("%d %s", status, body)
	}
	close(hold)
	wait.Wait()
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`, "Request-Timeout", "60"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// slowList is a registry that says which services it has when it may.
type slowList struct {
	*registry.Memory
	may chan struct{}
}

func (r slowList) Services(ctx context.Context) ([]string, error) {
	select {
	case <-r.may:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return r.Memory.Services(ctx)
}

// A gateway that starts answers when it knows the services: clients may come at once.
func TestCallsAtTheStart(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	if err := r.Register(t.Context(), registry.Instance{Service: "gone", Address: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	may := make(chan struct{})
	_, addr := start(t, slowList{r, may}, new(gateway.Config))
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, "POST /arith/Arith.Mul HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"A\":7,\"B\":8}")
	nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := nc.Read(make([]byte, 1000)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an answer of %d bytes before the services were known, %v", n, err)
	}
	nc.SetReadDeadline(time.Time{})
	close(may)
	if text, err := io.ReadAll(nc); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200 ") || !strings.HasSuffix(string(text), `{"C":56}`) {
		t.Errorf("%q, %v", text, err)
	}
}

// liar is a codec that sends what is no JSON as JSON.
type liar struct{ codec.Codec }

func (liar) Append(dst []byte, v any) ([]byte, error) {
	if _, ok := v.(*reply); ok {
		return append(dst, `{"C":`...), nil
	}
	return new(codec.JSON).Append(dst, v)
}

// Instances that send nonsense cost their callers an error, and the gateway nothing.
func TestLyingUpstreams(t *testing.T) {
	r := registry.NewMemory()
	l := listen(t)
	defer l.Close()
	go func() { // claims a frame of 4 GiB
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Write(append([]byte("ANSR"), bytes.Repeat([]byte{0xff}, 1000)...))
				io.Copy(io.Discard, c)
			}()
		}
	}()
	if err := r.Register(t.Context(), registry.Instance{Service: "liar", Address: l.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(anser.NoSignals(), anser.Codecs(liar{new(codec.JSON)}), anser.Announce(r, registry.Instance{Service: "arith"}), anser.Logger(slog.New(slog.DiscardHandler)))
	arith(s)
	at, served := listen(t), make(chan error, 1)
	go func() { served <- s.Serve(at) }()
	defer func() {
		s.Close()
		<-served
	}()
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "arith", 1)
	awaitThat(t, "the liar is believed", func() bool {
		for _, s := range g.Stats().Services {
			if s.Name == "liar" && s.Problem != "" {
				return true
			}
		}
		return false
	})
	if status, body := post(t, "http://"+addr+"/liar/Arith.Mul", `{}`); status != 501 || !strings.Contains(body, "the service liar cannot be called here") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`); status != 500 || !strings.Contains(body, "executed") {
		t.Errorf("%d %s", status, body)
	}
	if _, err := callGRPC(t, addr, "Arith.Mul", []byte{8, 7, 16, 8}); !errors.Is(err, anser.Internal) {
		t.Error(err)
	}
}

// A service without a description, one without instances, and one that leaves are errors that say
// so.
func TestServicesComeAndGo(t *testing.T) {
	r := registry.NewMemory()
	s := anser.NewServer(anser.NoSignals(), anser.NoDescribe(), anser.Announce(r, registry.Instance{Service: "mute"}), anser.Logger(slog.New(slog.DiscardHandler)))
	arith(s)
	at, served := listen(t), make(chan error, 1)
	go func() { served <- s.Serve(at) }()
	defer func() {
		s.Close()
		<-served
	}()
	g, addr := start(t, r, new(gateway.Config))
	awaitThat(t, "the service is not known", func() bool {
		list := g.Stats().Services
		return len(list) == 1 && list[0].Problem != ""
	})
	if status, body := post(t, "http://"+addr+"/mute/Arith.Mul", `{}`); status != 501 || !strings.Contains(body, "it does not publish its methods") || g.Stats().Undescribed != 1 {
		t.Errorf("%d %s", status, body)
	}
	one := serve(t, r, registry.Instance{Service: "arith", Version: "1"}, arith)
	await(t, g, "arith", 1)
	serve(t, r, registry.Instance{Service: "arith", Version: "2"}, func(s *anser.Server) {
		arith(s)
		anser.Handle(s, "Arith.Add", func(_ context.Context, in *args) (*reply, error) { return &reply{in.A + in.B}, nil })
	})
	await(t, g, "arith", 2)
	if status, body := post(t, "http://"+addr+"/arith/Arith.Add", `{"A":7,"B":8}`); status != 200 || body != `{"C":15}` {
		t.Errorf("%d %s", status, body)
	}
	one.Shutdown(t.Context())
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`); status != 200 || body != `{"C":56}` {
		t.Errorf("%d %s", status, body)
	}
	if err := r.Register(t.Context(), registry.Instance{Service: "gone", Address: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, "the service is not known", func() bool { return len(g.Stats().Services) == 3 })
	if status, body := post(t, "http://"+addr+"/gone/A.B", `{}`); status != 501 && status != 503 {
		t.Errorf("%d %s", status, body)
	}
}
