package nacos

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// A write that creates a service can take five seconds. If it were given up and repeated, Nacos
// would execute it after newer writes.
func TestSlowCreationOvertakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := new(slowNacos)
		r, err := Dial([]string{"h:1"})
		if err != nil {
			t.Fatal(err)
		}
		r.client.http.Transport = slow
		in := registry.Instance{Service: "arith", Address: "10.0.0.1:1"}
		for _, in.Version = range []string{"1", "2", "3"} {
			if err := r.Register(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if want := []string{"1", "2", "3"}; !slices.Equal(slow.writes, want) {
			t.Errorf("nacos executed the writes %q, want %q", slow.writes, want)
		}
	})
}

// slowNacos is a Nacos in memory for one instance. It executes the first write after five seconds,
// like one that misses the signal that the service exists.
type slowNacos struct {
	mu       sync.Mutex // guards the fields below
	began    bool
	instance *nacosInstance
	writes   []string // their versions, in the order of execution
}

// RoundTrip implements http.RoundTripper.
func (s *slowNacos) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	answer := make(chan string, 1)
	go func() { answer <- s.execute(req.Method, string(body)) }()
	select {
	case text := <-answer:
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (s *slowNacos) execute(method, body string) string {
	s.mu.Lock()
	creates := method == http.MethodPost && !s.began
	s.began = s.began || creates
	s.mu.Unlock()
	if creates {
		time.Sleep(5 * time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case http.MethodPost:
		params, _ := url.ParseQuery(body)
		written := &nacosInstance{IP: "10.0.0.1", Port: 1, Cluster: defaultCluster, Weight: 1}
		json.Unmarshal([]byte(params.Get("metadata")), &written.Metadata)
		s.instance = written
		s.writes = append(s.writes, written.Metadata["version"])
	case http.MethodDelete:
		s.instance = nil
	case http.MethodGet:
		var all []nacosInstance
		if s.instance != nil {
			all = append(all, *s.instance)
		}
		return encodeJSON(map[string]any{"hosts": all})
	}
	return "{}"
}

// A stamp exceeds the stamps of other processes, except one that no clock can have written.
func TestStamps(t *testing.T) {
	var b backend
	now := time.Now().UnixMicro()
	first := b.nextStamp(0)
	if first < now {
		t.Errorf("the stamp %d is before %d, now", first, now)
	}
	ahead := now + time.Hour.Microseconds()
	if got := b.nextStamp(ahead); got != ahead+1 {
		t.Errorf("after %d comes %d", ahead, got)
	}
	if got := b.nextStamp(first); got != ahead+2 {
		t.Errorf("after %d and %d comes %d", ahead, ahead+1, got)
	}
	if got := b.nextStamp(1<<63 - 1); got != ahead+3 {
		t.Errorf("after the largest number comes %d", got)
	}
}
