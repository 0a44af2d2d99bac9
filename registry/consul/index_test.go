package consul_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// TestIndexThatGoesBackwards plays an index sequence that a real Consul produces only by chance:
// every answer has its own index, and the queries show which index they wait for.
func TestIndexThatGoesBackwards(t *testing.T) {
	answers := make(chan struct {
		index string
		names []string
	}, 10)
	queries := make(chan string, 100)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		queries <- req.URL.Query().Get("index")
		select {
		case a := <-answers:
			entries := []*api.ServiceEntry{}
			for _, name := range a.names {
				entries = append(entries, &api.ServiceEntry{
					Node:    &api.Node{Address: "10.0.0.1"},
					Service: &api.AgentService{ID: name, Service: "arith", Address: name, Port: 1},
				})
			}
			w.Header().Set("X-Consul-Index", a.index)
			json.NewEncoder(w).Encode(entries)
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(fake.Close)
	u, _ := url.Parse(fake.URL)
	r, err := consul.Dial(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	answer := func(index string, names ...string) {
		answers <- struct {
			index string
			names []string
		}{index, names}
	}
	answer("100", "h1", "h2")
	answer("101", "h1", "h2") // no change: no update
	answer("7", "h1")         // backwards
	answer("7", "h1")
	answer("8", "h3")
	w := regtest.NewWatch(t, r)
	w.Expect("h1:1 h2:1")
	w.Expect("h1:1")
	w.Expect("h3:1")
	var asked []string
	for range 6 {
		asked = append(asked, <-queries)
	}
	if got := strings.Join(asked, " "); got != " 100 101  7 8" {
		t.Errorf("queries after the indexes %q, want a fresh one after the index went backwards", got)
	}
	w.NoTrouble()
}
