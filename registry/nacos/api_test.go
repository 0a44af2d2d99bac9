package nacos_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/nacos"
)

// The view of the console and other clients of Nacos.
func TestRecordInNacos(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	in := regtest.Instance("10.0.0.1:8972")
	in.Zone, in.Version, in.Weight, in.Tags = "north", "1.2", 250, map[string]string{"rack": "r-17"}
	regtest.Register(t, r, in)
	t.Log(shared.do(t, http.MethodGet, query("arith", namespace)))
	got := hosts(t, "arith", namespace)
	if len(got) != 1 {
		t.Fatalf("nacos has %+v, want one instance", got)
	}
	h := got[0]
	if h.IP != "10.0.0.1" || h.Port != 8972 || h.Weight != 2.5 || h.Cluster != "north" || !h.Valid ||
		h.Metadata["version"] != "1.2" || h.Metadata["rack"] != "r-17" || h.Metadata["zone"] != "north" {
		t.Errorf("nacos has %+v", h)
	}
	in.State = registry.Draining
	regtest.Register(t, r, in)
	if got := hosts(t, "arith", namespace); len(got) != 1 || got[0].Weight != 0 {
		t.Errorf("a draining instance is %+v for other clients, want the weight 0", got)
	}
}

// Instances of other programs, and weights changed by an operator.
func TestOthersAndOperators(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	post := func(form string) {
		t.Helper()
		shared.do(t, http.MethodPost, "/instance?serviceName=arith&namespaceId="+namespace+"&"+form)
	}
	post("ip=10.0.0.9&port=80&weight=3&clusterName=south&metadata=" + url.QueryEscape(`{"version":"7","lang":"java"}`))
	list := regtest.AwaitList(t, r, "10.0.0.9:80")
	if in := list[0]; in.Weight != 300 || in.Zone != "south" || in.Version != "7" || in.Tags["lang"] != "java" {
		t.Errorf("foreign instance %+v", in)
	}
	mine := regtest.Instance("10.0.0.1:8972")
	regtest.Register(t, r, mine)
	h := hosts(t, "arith", namespace)
	for _, h := range h {
		if h.IP == "10.0.0.1" {
			post("ip=10.0.0.1&port=8972&weight=0&metadata=" + url.QueryEscape(encode(t, h.Metadata)))
		}
	}
	ctx := regtest.Within(t)
	for {
		list := regtest.AwaitList(t, r, "10.0.0.1:8972 10.0.0.9:80")
		if list[0].State == registry.Disabled {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("an instance whose weight the operator set to 0 is %+v", list[0])
		}
	}
}

func TestSecondInstanceAtAnAddressIsRefused(t *testing.T) {
	r := dial(t, shared.address, nacos.Namespace(freshNamespace()))
	regtest.Register(t, r, regtest.Instance("10.0.0.1:8972"))
	second := regtest.Instance("10.0.0.1:8972")
	second.ID = "second"
	if err := r.Register(regtest.Within(t), second); err == nil || !strings.Contains(err.Error(), "give it another port") {
		t.Errorf("Register = %v, want to hear that the address is taken", err)
	}
	regtest.AwaitList(t, r, "10.0.0.1:8972")
}

// Nacos 0.8 has no users, so a proxy requires the token that later versions require.
func TestLogin(t *testing.T) {
	var logins, expired atomic.Int64
	forward := reverseProxy(t)
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/nacos/v1/auth/login" {
			if req.PostFormValue("username") != "app" || req.PostFormValue("password") != "app-secret" {
				http.Error(w, "unknown user!", http.StatusForbidden)
				return
			}
			logins.Add(1)
			io.WriteString(w, `{"accessToken":"token-secret","tokenTtl":18000,"globalAdmin":false}`)
			return
		}
		if req.URL.Query().Get("accessToken") != "token-secret" || expired.CompareAndSwap(1, 0) {
			http.Error(w, "token invalid!", http.StatusForbidden)
			return
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(guard.Close)
	address, namespace := guard.Listener.Addr().String(), freshNamespace()
	may := dial(t, address, nacos.Namespace(namespace), nacos.User("app", "app-secret"))
	regtest.Register(t, may, regtest.Instance("10.0.0.1:1"))
	regtest.AwaitList(t, may, "10.0.0.1:1")
	if n := logins.Load(); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
	for name, opts := range map[string][]nacos.Option{"no user": nil, "wrong password": {nacos.User("app", "guess")}} {
		regtest.NoAccess(t, name, dial(t, address, opts...), "use the option nacos.User", "guess")
	}
	// The server is down: the token is in the URL, and the URL is in the errors of net/http.
	guard.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := may.Register(ctx, regtest.Instance("10.0.0.3:1")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Register without a server = %v, want an error without the token", err)
	}
}

// reverseProxy returns a proxy to the server.
func reverseProxy(t *testing.T) *httputil.ReverseProxy {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := httputil.NewSingleHostReverseProxy(regtest.URL(t, "http://"+shared.address))
	p.Transport = transport
	return p
}

// Nacos 0.8 ignores a step that empties a list of two or more, and any further delete of the
// instances it still lists. Two processes that leave at the same moment cause that; here the old
// API does, which deletes two in one step.
func TestLeavingWhereDeletesAreIgnored(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	list := []registry.Instance{regtest.Instance("10.0.0.1:1"), regtest.Instance("10.0.0.2:1"), regtest.Instance("10.0.0.3:1")}
	for _, in := range list {
		regtest.Register(t, r, in)
	}
	both := url.QueryEscape(`[{"ip":"10.0.0.1","port":1,"clusterName":"DEFAULT"},{"ip":"10.0.0.2","port":1,"clusterName":"DEFAULT"},{"ip":"10.0.0.3","port":1,"clusterName":"DEFAULT"}]`)
	shared.do(t, http.MethodGet, "/api/remvIP4Dom?dom=arith&json=true&ipList="+both+"&namespaceId="+namespace)
	for _, in := range list {
		shared.do(t, http.MethodDelete, fmt.Sprintf("/instance?serviceName=arith&namespaceId=%s&ip=%s&port=1", namespace, strings.TrimSuffix(in.Address, ":1")))
	}
	if got := hosts(t, "arith", namespace); len(got) != 3 {
		t.Fatalf("nacos has %+v, want the three that it ignores the deletes of", got)
	}
	if err := r.Deregister(regtest.Within(t), list[0]); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := hosts(t, "arith", namespace); len(got) != 0 {
		t.Errorf("after Close nacos has %+v", got)
	}
}

func TestTLS(t *testing.T) {
	front := httptest.NewUnstartedServer(reverseProxy(t))
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs handshakes of clients without trusted roots
	front.StartTLS()
	t.Cleanup(front.Close)
	address, namespace := front.Listener.Addr().String(), freshNamespace()
	trusting := front.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.NextProtos = nil
	r := dial(t, address, nacos.Namespace(namespace), nacos.TLS(trusting))
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	regtest.AwaitList(t, r, "10.0.0.1:1")
	stranger := dial(t, address, nacos.TLS(&tls.Config{}))
	regtest.TimesOut(t, "Register at a server that nobody vouches for", "certificate", func(ctx context.Context) error {
		return stranger.Register(ctx, regtest.Instance("10.0.0.2:1"))
	})
}

// Of several addresses, the first that answers is used.
func TestServerThatIsAway(t *testing.T) {
	r, err := nacos.Dial([]string{servers.Address(t), shared.address}, nacos.Namespace(freshNamespace()), nacos.PollEvery(testPoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	regtest.AwaitList(t, r, "10.0.0.1:1")
}

// A real crash, instead of a broken network path.
func TestServerIsKilledAndStartedAgain(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	w := regtest.NewWatch(t, r)
	w.Expect("10.0.0.1:1")
	shared.Stop()
	w.ExpectTrouble("")
	shared.start(t)
	w.Expect("10.0.0.1:1")
	regtest.Register(t, r, regtest.Instance("10.0.0.2:1"))
	// A server that answers slowly after its start causes trouble once more, after which the list
	// is reported again.
	const before, after = "10.0.0.1:1", "10.0.0.1:1 10.0.0.2:1"
	ctx := regtest.Within(t)
	for got := before; got != after; {
		select {
		case got = <-w.Lists:
		case <-ctx.Done():
			t.Fatalf("no list %q within %v", after, regtest.Patience)
		}
		if got != before && got != after {
			t.Fatalf("got the list %q, want %q", got, after)
		}
	}
	// Nacos reads its list, adds to it and writes it: of two concurrent writes, one may be lost
	// and must be repeated.
	regtest.Eventually(t, regtest.Patience, "nacos with two instances", func() bool { return len(hosts(t, "arith", namespace)) == 2 })
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]string{
		"nacos://h:8848/arith":        "h:8848  arith",
		"nacos://h:1,i:2/arith":       "h:1,i:2  arith",
		"nacos://h:8848/team-a/arith": "h:8848 team-a arith",
	} {
		addresses, namespace, service, err := nacos.Parse(regtest.URL(t, target))
		if got := strings.Join(addresses, ",") + " " + namespace + " " + service; err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", target, got, err, want)
		}
	}
	for target, say := range map[string]string{
		"etcd://h:1/arith":           "is not one of nacos",
		"nacos://u:secret@h:1/arith": "use the option nacos.User",
		"nacos://h:1/arith?x=2":      "use options of nacos.Dial",
		"nacos://h/arith":            "is not host:port",
		"nacos://h:1":                "bad service",
		"nacos://h:1/a/b/arith":      "nacos://host:8848/namespace/service",
		"nacos://h:1/team-a/ar%20it": "use letters",
	} {
		_, _, err := nacos.Scheme().Open(regtest.URL(t, target))
		regtest.Refused(t, target, err, say, "secret")
	}
}

func TestBadOptions(t *testing.T) {
	for say, opt := range map[string]nacos.Option{
		"does not start with a slash": nacos.ContextPath("nacos"),
		"use 10ms or more":            nacos.PollEvery(0),
	} {
		_, err := nacos.Dial([]string{"h:1"}, opt)
		regtest.Refused(t, "Dial", err, say)
	}
	r := dial(t, shared.address, nacos.ContextPath("/elsewhere"))
	if _, err := registry.List(regtest.Within(t), r, "arith"); err == nil || !strings.Contains(err.Error(), "nacos.ContextPath") {
		t.Errorf("List under a path that is not there = %v, want to hear of the option", err)
	}
}
