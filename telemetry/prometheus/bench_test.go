package prometheus_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// BenchmarkCalls makes calls without a meter, with one, and with one that is scraped all the time.
func BenchmarkCalls(b *testing.B) {
	for _, mode := range []string{"off", "meter", "scraped"} {
		b.Run(mode, func(b *testing.B) {
			m := telemetry.New()
			serverOpts := []anser.ServerOption{anser.NoSignals(), anser.Logger(quiet)}
			dialOpts := []anser.DialOption{anser.Logger(quiet)}
			if mode != "off" {
				serverOpts, dialOpts = append(serverOpts, m.Option()), append(dialOpts, m.Option())
			}
			s := anser.NewServer(serverOpts...)
			anser.Handle(s, "Arith.Add", func(_ context.Context, in *numbers) (*number, error) { return &number{in.A + in.B}, nil })
			l, err := s.Listen("127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go s.Serve(l)
			defer s.Close()
			c, err := anser.Dial(l.Addr().String(), dialOpts...)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			if mode == "scraped" {
				defer scraped(prometheus.Handler(m))()
			}
			b.ReportAllocs()
			b.SetParallelism(50)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := anser.Call[number](context.Background(), c, "Arith.Add", &numbers{1, 2}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// scraped asks a handler for its metrics every 100 ms until the returned function is called.
func scraped(h http.Handler) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
				h.ServeHTTP(discard{make(http.Header)}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// discard is a response that nothing keeps.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(p []byte) (int, error) { return io.Discard.Write(p) }

// BenchmarkScrape is one scrape of a server with many methods, each of which had several codes.
func BenchmarkScrape(b *testing.B) {
	for _, methods := range []int{10, 1000} {
		b.Run(fmt.Sprint(methods), func(b *testing.B) {
			m := telemetry.New()
			for i := range methods {
				for code := anser.OK; code <= anser.NotFound; code++ {
					var err error
					if code != anser.OK {
						err = code
					}
					for took := time.Microsecond; took < time.Second; took *= 3 {
						ended(m, &anser.CallInfo{Server: true, Method: fmt.Sprintf("Service.Method%d", i), Duration: took, Err: err})
					}
				}
			}
			h := prometheus.Handler(m)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(discard{make(http.Header)}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
		})
	}
}
