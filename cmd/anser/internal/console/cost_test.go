package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/registry"
)

// counting counts what services are asked, and what they answer.
type counting struct {
	http.RoundTripper
	requests, bytes atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	c.requests.Add(1)
	if err == nil {
		body, _ := io.ReadAll(answer.Body)
		c.bytes.Add(int64(len(body)))
		answer.Body = io.NopCloser(bytes.NewReader(body))
	}
	return answer, err
}

// A minute of viewers costs the services the same requests and bytes for one viewer as for ten, and
// those of a large system fewer of them each.
func TestWhatAMinuteCostsTheServices(t *testing.T) {
	for _, c := range []struct{ services, instances, viewers, requests int }{
		{5, 4, 1, 60}, {5, 4, 10, 60}, {30, 10, 1, 30}, {30, 10, 10, 30},
	} {
		t.Run(fmt.Sprintf("%d instances, %d viewers", c.services*c.instances, c.viewers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, size := costOfAMinute(t, c.services, c.instances, c.viewers, "/api/events")
				n := int64(c.services * c.instances)
				if requests != n*int64(c.requests) {
					t.Errorf("%d requests, want %d for each of %d instances", requests, c.requests, n)
				}
				if most := int64(2500); size > requests*most {
					t.Errorf("an answer has %d bytes, at most %d", size/requests, most)
				}
			})
		})
	}
	t.Run("a service in detail", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			requests, _ := costOfAMinute(t, 30, 10, 3, "/api/events?instances=1&service=shop.service-000")
			if want := int64(290*30 + 10*60); requests != want {
				t.Errorf("%d requests, want %d", requests, want)
			}
		})
	})
}

func costOfAMinute(t *testing.T, services, instances, viewers int, path string) (requests, size int64) {
	sim := simulate.New(simulate.Options{Services: services, Instances: instances, Rate: 100, Base: base})
	reg := registry.NewMemory()
	if err := sim.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	count := &counting{RoundTripper: simulate.Transport(sim)}
	s, err := console.New(console.Options{
		Registries: []collect.Source{{Name: "memory://", Kind: "memory", Resolver: reg}},
		Client:     &http.Client{Transport: count}, Guard: func(h http.Handler) http.Handler { return h },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.Sleep(2 * time.Second) // the console knows the services
	for range viewers {
		go s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
	requests, size = count.requests.Load(), count.bytes.Load()
	time.Sleep(time.Minute)
	synctest.Wait()
	return count.requests.Load() - requests, count.bytes.Load() - size
}
