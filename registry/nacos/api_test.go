package nacos_test

import (
	"context"
	"crypto/tls"
	"errors"
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

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/nacos"
)

// limit is how long a test waits for what comes at once on a machine that is not busy.
const limit = 60 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func register(t *testing.T, r registry.Registrar, in registry.Instance) {
	t.Helper()
	if err := r.Register(within(t), in); err != nil {
		t.Fatal(err)
	}
}

// awaitList waits until the registry lists these addresses for the service arith.
func awaitList(t *testing.T, r registry.Resolver, want string) []registry.Instance {
	t.Helper()
	ctx := within(t)
	for {
		list, err := registry.List(ctx, r, "arith")
		if err == nil && join(list) == want {
			return list
		}
		if ctx.Err() != nil {
			t.Fatalf("list %q, %v: want %q", join(list), err, want)
		}
		time.Sleep(testPoll)
	}
}

// What the console and other clients of Nacos see.
func TestRecordInNacos(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	in := instance("10.0.0.1:8972")
	in.Zone, in.Version, in.Weight, in.Tags = "north", "1.2", 250, map[string]string{"rack": "r-17"}
	register(t, r, in)
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
	register(t, r, in)
	if got := hosts(t, "arith", namespace); len(got) != 1 || got[0].Weight != 0 {
		t.Errorf("a draining instance is %+v for other clients, want the weight 0", got)
	}
}

// Instances of programs that know nothing of Anser, and weights that an operator has changed.
func TestOthersAndOperators(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	post := func(form string) {
		t.Helper()
		shared.do(t, http.MethodPost, "/instance?serviceName=arith&namespaceId="+namespace+"&"+form)
	}
	post("ip=10.0.0.9&port=80&weight=3&clusterName=south&metadata=" + url.QueryEscape(`{"version":"7","lang":"java"}`))
	list := awaitList(t, r, "10.0.0.9:80")
	if in := list[0]; in.Weight != 300 || in.Zone != "south" || in.Version != "7" || in.Tags["lang"] != "java" {
		t.Errorf("foreign instance %+v", in)
	}
	mine := instance("10.0.0.1:8972")
	register(t, r, mine)
	h := hosts(t, "arith", namespace)
	for _, h := range h {
		if h.IP == "10.0.0.1" {
			post("ip=10.0.0.1&port=8972&weight=0&metadata=" + url.QueryEscape(encode(t, h.Metadata)))
		}
	}
	ctx := within(t)
	for {
		list := awaitList(t, r, "10.0.0.1:8972 10.0.0.9:80")
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
	register(t, r, instance("10.0.0.1:8972"))
	second := instance("10.0.0.1:8972")
	second.ID = "second"
	if err := r.Register(within(t), second); err == nil || !strings.Contains(err.Error(), "give it another port") {
		t.Errorf("Register = %v, want to hear that the address is taken", err)
	}
	awaitList(t, r, "10.0.0.1:8972")
}

// Nacos 0.8 has no users, so a proxy asks for the token that later versions ask for.
func TestLogin(t *testing.T) {
	var logins, expired atomic.Int64
	target, err := url.Parse("http://" + shared.address)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
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
	register(t, may, instance("10.0.0.1:1"))
	awaitList(t, may, "10.0.0.1:1")
	if n := logins.Load(); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
	for name, opts := range map[string][]nacos.Option{"no user": nil, "wrong password": {nacos.User("app", "guess")}} {
		r := dial(t, address, opts...)
		ctx := within(t)
		_, listing := registry.List(ctx, r, "arith")
		_, naming := r.Services(ctx)
		for what, err := range map[string]error{"Register": r.Register(ctx, instance("10.0.0.2:1")), "List": listing, "Services": naming} {
			if err == nil || !strings.Contains(err.Error(), "use the option nacos.User") || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %s = %v, want at once to hear of the option", name, what, err)
			} else if strings.Contains(err.Error(), "guess") {
				t.Errorf("%s: %s tells the password: %v", name, what, err)
			}
		}
	}
	// A server that is gone: the token is in the URL, and the URL is in the errors of net/http.
	guard.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := may.Register(ctx, instance("10.0.0.3:1")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Register without a server = %v, want an error without the token", err)
	}
}

// Nacos 0.8 ignores a step that empties a list of two or more, and any further delete of what it still shows. Two
// processes that leave at the same moment bring that about; here the old API does, which deletes two in one step.
func TestLeavingWhereDeletesAreIgnored(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	list := []registry.Instance{instance("10.0.0.1:1"), instance("10.0.0.2:1"), instance("10.0.0.3:1")}
	for _, in := range list {
		register(t, r, in)
	}
	both := url.QueryEscape(`[{"ip":"10.0.0.1","port":1,"clusterName":"DEFAULT"},{"ip":"10.0.0.2","port":1,"clusterName":"DEFAULT"},{"ip":"10.0.0.3","port":1,"clusterName":"DEFAULT"}]`)
	shared.do(t, http.MethodGet, "/api/remvIP4Dom?dom=arith&json=true&ipList="+both+"&namespaceId="+namespace)
	for _, in := range list {
		shared.do(t, http.MethodDelete, fmt.Sprintf("/instance?serviceName=arith&namespaceId=%s&ip=%s&port=1", namespace, strings.TrimSuffix(in.Address, ":1")))
	}
	if got := hosts(t, "arith", namespace); len(got) != 3 {
		t.Fatalf("nacos has %+v, want the three that it ignores the deletes of", got)
	}
	if err := r.Deregister(within(t), list[0]); err != nil {
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
	target, err := url.Parse("http://" + shared.address)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // it does not like who trusts nobody
	front.StartTLS()
	t.Cleanup(front.Close)
	address, namespace := front.Listener.Addr().String(), freshNamespace()
	trusting := front.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.NextProtos = nil
	r := dial(t, address, nacos.Namespace(namespace), nacos.TLS(trusting))
	register(t, r, instance("10.0.0.1:1"))
	awaitList(t, r, "10.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := dial(t, address, nacos.TLS(&tls.Config{})).Register(ctx, instance("10.0.0.2:1")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Register at a server that nobody vouches for = %v, want to hear of its certificate", err)
	}
}

// Of several addresses the first that answers is used.
func TestServerThatIsAway(t *testing.T) {
	r, err := nacos.Dial([]string{freeAddress(), shared.address}, nacos.Namespace(freshNamespace()), nacos.PollEvery(testPoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	register(t, r, instance("10.0.0.1:1"))
	awaitList(t, r, "10.0.0.1:1")
}

// A real crash, instead of a way to the server that is cut.
func TestServerIsKilledAndStartedAgain(t *testing.T) {
	namespace := freshNamespace()
	r := dial(t, shared.address, nacos.Namespace(namespace))
	register(t, r, instance("10.0.0.1:1"))
	updates, troubles := make(chan string, 1000), make(chan error, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx, "arith", func(list []registry.Instance) { updates <- join(list) }, func(err error) { troubles <- err })
	}()
	t.Cleanup(func() { cancel(); <-done })
	next := func() string {
		t.Helper()
		select {
		case got := <-updates:
			return got
		case <-time.After(2 * limit):
			t.Fatal("no update")
			return ""
		}
	}
	if got := next(); got != "10.0.0.1:1" {
		t.Fatalf("list %q", got)
	}
	shared.stop()
	select {
	case <-troubles:
	case <-time.After(limit):
		t.Fatal("no trouble without a server")
	}
	if err := shared.start(); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "10.0.0.1:1" {
		t.Errorf("after the restart the list is %q", got)
	}
	register(t, r, instance("10.0.0.2:1"))
	if got := next(); got != "10.0.0.1:1 10.0.0.2:1" {
		t.Errorf("after another instance the list is %q", got)
	}
	if got := hosts(t, "arith", namespace); len(got) != 2 {
		t.Errorf("nacos has %+v, want two instances", got)
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]string{
		"nacos://h:8848/arith":        "h:8848  arith",
		"nacos://h:1,i:2/arith":       "h:1,i:2  arith",
		"nacos://h:8848/team-a/arith": "h:8848 team-a arith",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		addresses, namespace, service, err := nacos.Parse(u)
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
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := nacos.Scheme().Open(u); err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error with %q", target, err, say)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for say, opt := range map[string]nacos.Option{
		"does not start with a slash": nacos.ContextPath("nacos"),
		"use 10ms or more":            nacos.PollEvery(0),
	} {
		if r, err := nacos.Dial([]string{"h:1"}, opt); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Dial = %v, %v, want an error with %q", r, err, say)
		}
	}
	r := dial(t, shared.address, nacos.ContextPath("/elsewhere"))
	if _, err := registry.List(within(t), r, "arith"); err == nil || !strings.Contains(err.Error(), "nacos.ContextPath") {
		t.Errorf("List under a path that is not there = %v, want to hear of the option", err)
	}
}
