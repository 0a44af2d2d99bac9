package accesslog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/accesslog"
	"github.com/anser-rpc/anser/internal/testlog"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// lines collects log lines.
type lines struct{ testlog.Buffer }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// take returns the lines so far.
func (l *lines) take(t *testing.T) (list []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(l.Take())); d.More(); {
		m := make(map[string]any)
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

type sides struct {
	server, client lines
	c              *anser.Client
}

func start(t *testing.T, l net.Listener, dial anser.DialOption, opts ...accesslog.Option) *sides {
	t.Helper()
	b := new(sides)
	onServer, err := accesslog.New(b.server.logger(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	onClient, err := accesslog.New(b.client.logger(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(silent, anser.Intercept(onServer))
	anser.Handle(s, "Log.Do", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		switch string(*in) {
		case "secret: slow":
			time.Sleep(3 * time.Second)
		case "secret: fail":
			return nil, errors.New("secret message")
		case "secret: refuse":
			return nil, anser.Refuse(anser.PermissionDenied, "no").WithRetryAfter(anser.RetryNever)
		case "secret: panic":
			panic("secret panic")
		case "secret: retry":
			if anser.AttemptFrom(ctx) == 0 {
				return nil, anser.Aborted
			}
		}
		return in, nil
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	b.c, err = anser.Dial(l.Addr().String(), dial, silent, anser.NoSnapshot(), anser.Intercept(onClient), anser.Idempotent(), anser.RetryOn(anser.Aborted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.c.Close()
		s.Close()
		<-done
	})
	return b
}

func (b *sides) call(ctx context.Context, what string) error {
	in := []byte("secret: " + what)
	_, err := anser.Call[[]byte](anser.WithMetadata(ctx, anser.Metadata{"authorization": "secret"}), b.c, "Log.Do", &in)
	return err
}

// check compares a line with the wanted attributes; "-" means that the attribute must be missing.
func check(t *testing.T, line map[string]any, want map[string]any) {
	t.Helper()
	for k, v := range want {
		if got, ok := line[k]; v == "-" && ok || v != "-" && got != v {
			t.Errorf("%s is %v, want %v in %v", k, got, v, line)
		}
	}
	if d, ok := line["duration"].(float64); !ok || d < 0 {
		t.Errorf("no duration in %v", line)
	}
	if text, _ := json.Marshal(line); strings.Contains(string(text), "secret") {
		t.Errorf("%s tells a secret", text)
	}
}

func TestLines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, l, anser.Conns(1), accesslog.Slow(time.Hour))
	trace := anser.Trace{TraceID: [16]byte{0xab}, SpanID: [8]byte{1}}
	address := l.Addr().String()
	for _, test := range []struct {
		what           string
		ctx            context.Context
		server, client []map[string]any
	}{
		{
			"succeed", anser.WithTrace(context.Background(), trace),
			[]map[string]any{{"level": "INFO", "msg": "call", "side": "server", "method": "Log.Do", "code": "ok", "outcome": "-", "attempt": 0.0, "trace": "ab000000000000000000000000000000", "slow": "-", "message": "-"}},
			[]map[string]any{{"level": "INFO", "side": "client", "method": "Log.Do", "peer": address, "code": "ok", "outcome": "-", "attempt": 0.0, "trace": "ab000000000000000000000000000000"}},
		},
		{
			"fail", context.Background(),
			[]map[string]any{{"level": "ERROR", "code": "unknown", "outcome": "executed", "trace": "-", "message": "-"}},
			[]map[string]any{{"level": "ERROR", "code": "unknown", "outcome": "executed", "peer": address, "trace": "-"}},
		},
		{
			"refuse", context.Background(),
			[]map[string]any{{"level": "WARN", "code": "permission denied", "outcome": "refused"}},
			[]map[string]any{{"level": "WARN", "code": "permission denied", "outcome": "refused", "peer": address}},
		},
		{
			"panic", context.Background(),
			[]map[string]any{{"level": "ERROR", "code": "internal", "outcome": "executed"}},
			[]map[string]any{{"level": "ERROR", "code": "internal", "outcome": "executed", "peer": address}},
		},
		{
			"retry", context.Background(),
			[]map[string]any{{"code": "aborted", "attempt": 0.0}, {"code": "ok", "attempt": 1.0}},
			[]map[string]any{{"code": "ok", "attempt": 1.0, "peer": address}},
		},
	} {
		t.Run(test.what, func(t *testing.T) {
			err := b.call(test.ctx, test.what)
			if ok := test.what == "succeed" || test.what == "retry"; ok != (err == nil) {
				t.Fatal(err)
			}
			for _, side := range []struct {
				got  []map[string]any
				want []map[string]any
			}{{b.server.take(t), test.server}, {b.client.take(t), test.client}} {
				if len(side.got) != len(side.want) {
					t.Fatalf("%d lines, want %d: %v", len(side.got), len(side.want), side.got)
				}
				for i, line := range side.got {
					check(t, line, side.want[i])
					if line["side"] == "server" {
						if _, _, err := net.SplitHostPort(line["peer"].(string)); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
}

// A fraction of the successful calls is logged; calls that fail or are slow always are.
func TestSample(t *testing.T) {
	for _, share := range []float64{0, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			network := new(ansertest.Network)
			b := start(t, network.Listen("a:1"), anser.Dialer(network.Dial), accesslog.Sample(share), accesslog.Slow(2*time.Second))
			const calls = 1000
			for range calls {
				if err := b.call(t.Context(), "succeed"); err != nil {
					t.Fatal(err)
				}
			}
			// Half of a thousand is further than 150 from the mean once in 10^21 times.
			if n := float64(len(b.server.take(t))); n < calls*share-150 || n > calls*share+150 || share == 0 && n > 0 {
				t.Errorf("%v lines for %d calls with a share of %v", n, calls, share)
			}
			b.client.take(t)
			b.call(t.Context(), "fail")
			if err := b.call(t.Context(), "slow"); err != nil {
				t.Fatal(err)
			}
			for _, l := range []*lines{&b.server, &b.client} {
				list := l.take(t)
				if len(list) != 2 {
					t.Fatal(list)
				}
				check(t, list[0], map[string]any{"code": "unknown", "slow": "-"})
				check(t, list[1], map[string]any{"code": "ok", "slow": true, "level": "WARN"})
			}
		})
	}
}

// The messages of errors are included if the option is set.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		b := start(t, network.Listen("a:1"), anser.Dialer(network.Dial), accesslog.Messages())
		b.call(t.Context(), "fail")
		for _, l := range []*lines{&b.server, &b.client} {
			if list := l.take(t); len(list) != 1 || list[0]["message"] != "secret message" {
				t.Error(list)
			}
		}
	})
}

// A oneway call has a line on both sides, on the client with the instance that received it.
func TestOneway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		b := start(t, network.Listen("a:1"), anser.Dialer(network.Dial))
		in := []byte("secret: succeed")
		if err := b.c.Send(t.Context(), "Log.Do", &in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, l := range []*lines{&b.server, &b.client} {
			list := l.take(t)
			if len(list) != 1 {
				t.Fatal(list)
			}
			check(t, list[0], map[string]any{"code": "ok", "oneway": true, "attempt": 0.0})
		}
		b.call(t.Context(), "succeed")
		check(t, b.client.take(t)[0], map[string]any{"oneway": "-", "peer": "a:1"})
	})
}

func TestMistakes(t *testing.T) {
	for _, opt := range []accesslog.Option{nil, accesslog.Sample(-1), accesslog.Sample(2), accesslog.Slow(0)} {
		if i, err := accesslog.New(nil, opt); err == nil || i != nil {
			t.Error("no error")
		}
	}
	if _, err := accesslog.New(nil); err != nil {
		t.Error(err)
	}
}

// Intended errors of a handler need no attention; calls that are refused or broken do.
func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server, client lines
		onServer, err := accesslog.New(server.logger())
		if err != nil {
			t.Fatal(err)
		}
		onClient, err := accesslog.New(client.logger())
		if err != nil {
			t.Fatal(err)
		}
		network := new(ansertest.Network)
		s := anser.NewServer(silent, anser.Intercept(onServer))
		for code := anser.Canceled; code <= anser.Unauthenticated; code++ {
			name := fmt.Sprintf("Log.Code%d", code)
			anser.Handle(s, name, func(context.Context, *[]byte) (*[]byte, error) { return nil, code })
		}
		go s.Serve(network.Listen("a:1"))
		defer s.Close()
		c, err := anser.Dial("a:1", anser.Dialer(network.Dial), anser.Intercept(onClient), silent)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		levels := map[anser.Code]string{
			anser.Unknown: "ERROR", anser.Internal: "ERROR", anser.DataLoss: "ERROR",
			anser.DeadlineExceeded: "WARN", anser.ResourceExhausted: "WARN", anser.Unimplemented: "WARN", anser.Unavailable: "WARN",
		}
		for code := anser.Canceled; code <= anser.Unauthenticated; code++ {
			anser.Call[[]byte](t.Context(), c, fmt.Sprintf("Log.Code%d", code), new([]byte))
			want := levels[code]
			if want == "" {
				want = "INFO"
			}
			for side, l := range map[string]*lines{"server": &server, "client": &client} {
				if got := l.take(t); len(got) != 1 || got[0]["level"] != want || got[0]["outcome"] != "executed" {
					t.Errorf("%s, %v: %v, want the level %s", side, code, got, want)
				}
			}
		}
		anser.Call[[]byte](t.Context(), c, "Log.Nothing", new([]byte))
		if got := client.take(t); len(got) != 1 || got[0]["level"] != "WARN" || got[0]["outcome"] != "refused" {
			t.Errorf("refused: %v, want the level WARN", got)
		}
	})
}
