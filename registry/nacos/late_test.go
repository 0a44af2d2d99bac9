package nacos_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/nacos"
)

// A request without an answer is repeated, and Nacos may execute the first one later, after newer
// ones. The owner replaces its data, and a watch does not return to them.
func TestLateWrite(t *testing.T) {
	for name, last := range map[string]string{"old data": "3", "old data equal to the newest": "1"} {
		t.Run(name, func(t *testing.T) {
			namespace := freshNamespace()
			address, late := losesFirstWrite(t)
			r := dial(t, address, nacos.Namespace(namespace))
			w := regtest.NewWatchOf(t, dial(t, shared.address, nacos.Namespace(namespace)), tagged)
			in := regtest.Instance("10.0.0.1:1")
			for _, n := range []string{"1", "2", last} {
				in.Tags = map[string]string{"n": n}
				regtest.Register(t, r, in)
				w.Await(n)
			}
			before := stampOf(t, namespace)
			shared.do(t, http.MethodPost, "/instance?"+<-late)
			awaitStamp(t, namespace, before)
			if got := hosts(t, "arith", namespace)[0].Metadata["n"]; got != last {
				t.Errorf("nacos has the data %q, want %q", got, last)
			}
			w.Only(last)
		})
	}
}

// The late write of a process that has ended does not look like a takeover to its successor.
func TestLateWriteOfPredecessor(t *testing.T) {
	namespace := freshNamespace()
	address, late := losesFirstWrite(t)
	predecessor := dial(t, address, nacos.Namespace(namespace))
	regtest.Register(t, predecessor, regtest.Instance("10.0.0.1:1"))
	if err := predecessor.Close(); err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, dial(t, shared.address, nacos.Namespace(namespace)), regtest.Instance("10.0.0.1:1"))
	before := stampOf(t, namespace)
	shared.do(t, http.MethodPost, "/instance?"+<-late)
	awaitStamp(t, namespace, before)
}

// losesFirstWrite returns the address of a proxy that reads the first POST and closes its
// connection, and a channel that receives the parameters of that POST.
func losesFirstWrite(t *testing.T) (address string, late <-chan string) {
	forward := reverseProxy(t)
	lost := make(chan string, 1)
	var posts atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && posts.Add(1) == 1 {
			params, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			lost <- string(params)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	return strings.TrimPrefix(front.URL, "http://"), lost
}

// tagged returns the tags n of the instances.
func tagged(list []registry.Instance) string {
	var tags []string
	for _, in := range list {
		tags = append(tags, in.Tags["n"])
	}
	return strings.Join(tags, " ")
}

// stampOf returns when the only instance of the service was written.
func stampOf(t *testing.T, namespace string) int64 {
	t.Helper()
	got := hosts(t, "arith", namespace)
	if len(got) != 1 {
		t.Fatalf("nacos has %+v, want one instance", got)
	}
	stamp, err := strconv.ParseInt(got[0].Metadata["anser.stamp"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return stamp
}

// awaitStamp waits until the only instance of the service was written after before.
func awaitStamp(t *testing.T, namespace string, before int64) {
	t.Helper()
	regtest.Eventually(t, regtest.Patience, "a new write of the owner", func() bool { return stampOf(t, namespace) > before })
}
