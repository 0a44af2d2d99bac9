package kubernetes_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/kubernetes"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testTTL is longer than a pause of the machine: a Lease that expires meanwhile would change the
// list.
const testTTL = 20 * time.Second

func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		c, ttl := newCluster(t), testTTL
		if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
			ttl = 2 * time.Second // this test waits for it to expire
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := kubernetes.Dial(kubernetes.Config(c.registrar), kubernetes.Namespace(c.namespace), kubernetes.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
			Stop: c.server.stop, Start: c.server.start,
			ForgetLeases: func() { forget(t, c) },
			ServerInside: c.inside,
			HostPortOnly: true,
		}
	})
}

// forget deletes all Leases and EndpointSlices of the namespace.
func forget(t *testing.T, c *cluster) {
	t.Helper()
	r := c.dial(t, c.admin)
	defer r.Close()
	if err := r.Slices().DeleteCollection(regtest.Within(t), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Leases().DeleteCollection(regtest.Within(t), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func endpointSlice(name, service string, ports map[string]int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
	}
	for name, port := range ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(name), Port: new(port), Protocol: new(corev1.ProtocolTCP)})
	}
	return s
}

func endpoint(ip string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{ip}, Zone: new("eu-1a"), NodeName: new("node-1"),
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "pod-" + ip},
		Conditions: discoveryv1.EndpointConditions{Ready: new(ready), Serving: new(serving), Terminating: new(terminating)},
	}
}

// watcher collects the calls of a Watch.
type watcher struct {
	updates  chan []registry.Instance
	troubles chan error
	ended    chan error
}

// watch runs a Watch until the end of the test.
func watch(t *testing.T, r *kubernetes.Registry, service string) *watcher {
	w := &watcher{make(chan []registry.Instance, 10_000), make(chan error, 10_000), make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- r.Watch(ctx, service, func(list []registry.Instance) { w.updates <- list }, func(err error) { w.troubles <- err })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// await waits for a list for which ok returns true.
func (w *watcher) await(t *testing.T, what string, ok func([]registry.Instance) bool) {
	t.Helper()
	after := time.After(regtest.Patience)
	var last []registry.Instance
	for {
		select {
		case last = <-w.updates:
			if ok(last) {
				return
			}
		case err := <-w.ended:
			t.Fatalf("%s: Watch ended with %v", what, err)
		case <-after:
			t.Fatalf("%s: not after %v; last list of %d: %.500v", what, regtest.Patience, len(last), last)
		}
	}
}

func (w *watcher) awaitTrouble(t *testing.T, text string) {
	t.Helper()
	after := time.After(regtest.Patience)
	for {
		select {
		case err := <-w.troubles:
			if has(err, text) {
				return
			}
		case <-after:
			t.Fatalf("no trouble with %q after %v", text, regtest.Patience)
		}
	}
}

func length(n int) func([]registry.Instance) bool {
	return func(list []registry.Instance) bool { return len(list) == n }
}

var twoPorts = map[string]int32{"grpc": 9000, "metrics": 9100}

// The main use: a Service whose EndpointSlices are written by Kubernetes. The client needs no
// permission but to read these.
func TestOrdinaryService(t *testing.T) {
	c := newCluster(t)
	if fake, ok := c.server.(*fakeServer); ok {
		fake.forbid("list leases", "watch leases", "get leases")
	}
	ctx, kube := regtest.Within(t), c.dial(t, c.admin).Slices()
	slice, err := kube.Create(ctx, endpointSlice("arith-x1", "arith", twoPorts,
		endpoint("10.0.0.1", true, true, false), endpoint("10.0.0.2", false, false, false), endpoint("10.0.0.3", false, true, true)), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	six := endpointSlice("arith-x2", "arith", twoPorts, endpoint("2001:db8::1", true, true, false))
	six.AddressType = discoveryv1.AddressTypeIPv6
	if _, err := kube.Create(ctx, six, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := c.dial(t, c.client, kubernetes.Port("grpc"))
	list, err := registry.List(ctx, r, "arith")
	if err != nil {
		t.Fatal(err)
	}
	tags := func(ip string) map[string]string { return map[string]string{"pod": "pod-" + ip, "node": "node-1"} }
	want := []registry.Instance{
		{Service: "arith", Address: "10.0.0.1:9000", Zone: "eu-1a", Tags: tags("10.0.0.1")},
		{Service: "arith", Address: "10.0.0.3:9000", Zone: "eu-1a", State: registry.Draining, Tags: tags("10.0.0.3")},
	}
	if !registry.Equal(list, want) {
		t.Errorf("list %+v\nwant %+v", list, want)
	}
	if names, err := r.Services(ctx); err != nil || !slices.Equal(names, []string{"arith"}) {
		t.Errorf("services %q, %v", names, err)
	}
	w := watch(t, r, "arith")
	w.await(t, "the first list", length(2))
	slice.Endpoints[1] = endpoint("10.0.0.2", true, true, false)
	if slice, err = kube.Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "a pod got ready", length(3))
	// Kubernetes moves an endpoint to another slice: it adds it there first, and then removes it
	// here.
	if _, err := kube.Create(ctx, endpointSlice("arith-x3", "arith", twoPorts,
		endpoint("10.0.0.1", false, true, true), endpoint("10.0.0.4", true, true, false)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "an endpoint in two slices", func(list []registry.Instance) bool {
		return len(list) == 4 && list[0].Address == "10.0.0.1:9000" && list[0].State == registry.Up
	})
	if err := kube.Delete(ctx, slice.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "a slice gone", func(list []registry.Instance) bool { return len(list) == 2 && list[0].State == registry.Draining })
	watch(t, c.dial(t, c.client), "arith").awaitTrouble(t, "kubernetes:///"+c.namespace+"/arith:port")
	watch(t, c.dial(t, c.client, kubernetes.Port("web")), "arith").awaitTrouble(t, `use one of ["grpc" "metrics"]`)
}

// A thousand pods, in slices of a hundred as Kubernetes writes them, and in one slice of the
// maximum size.
func TestThousandPods(t *testing.T) {
	c := newCluster(t)
	ctx, kube := regtest.Within(t), c.dial(t, c.admin).Slices()
	w := watch(t, c.dial(t, c.client, kubernetes.Port("grpc")), "arith")
	w.await(t, "nothing yet", length(0))
	var all []discoveryv1.Endpoint
	for i := range 1000 {
		all = append(all, endpoint(fmt.Sprintf("10.1.%d.%d", i/250, i%250), true, true, false))
	}
	for i, part := range slices.Collect(slices.Chunk(all, 100)) {
		if _, err := kube.Create(ctx, endpointSlice(fmt.Sprint("arith-", i), "arith", twoPorts, part...), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.await(t, "ten slices", length(1000))
	if _, err := kube.Create(ctx, endpointSlice("large", "echo", twoPorts, all...), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch(t, c.dial(t, c.client, kubernetes.Port("grpc")), "echo").await(t, "one slice", length(1000))
}

// The view of kubectl and other clients of Kubernetes.
func TestRecordInKubernetes(t *testing.T) {
	c := newCluster(t)
	r, ctx := c.dial(t, c.registrar), regtest.Within(t)
	in := registry.Instance{Service: "Arith.v2", Address: "10.0.0.1:8972", Zone: "eu-1a", State: registry.Draining, Group: "blue", Version: "1.2.3+b"}
	regtest.Register(t, r, in)
	all, err := r.Slices().List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=Arith.v2,anser-rpc/group=blue,!anser-rpc/version"})
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("slices %+v, %v", all, err)
	}
	s := all.Items[0]
	e := s.Endpoints[0]
	if e.Addresses[0] != "10.0.0.1" || *e.Zone != "eu-1a" || *e.Conditions.Ready || !*e.Conditions.Serving || !*e.Conditions.Terminating ||
		*s.Ports[0].Port != 8972 || *s.Ports[0].Name != kubernetes.PortName || !strings.HasPrefix(s.Name, "arith-v2-anser-") {
		t.Errorf("EndpointSlice %+v", s)
	}
	held, err := r.Leases().List(ctx, metav1.ListOptions{})
	if err != nil || len(held.Items) != 1 || held.Items[0].Name != s.Labels["anser-rpc/owner"] || *held.Items[0].Spec.LeaseDurationSeconds != 30 {
		t.Errorf("leases %+v, %v, want one of 30 s that the slice names", held, err)
	}
}

// A slice with Anser's labels but without a valid record is trouble, and the others are found.
func TestBadRecord(t *testing.T) {
	c := newCluster(t)
	r, ctx := c.dial(t, c.registrar), regtest.Within(t)
	for i := range 2 {
		regtest.Register(t, r, regtest.Instance(fmt.Sprintf("10.0.0.%d:1", i+1)))
	}
	all, err := r.Slices().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bad := all.Items[0]
	bad.Name, bad.ResourceVersion, bad.UID = "mine", "", ""
	if _, err := r.Slices().Create(ctx, &bad, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := watch(t, c.dial(t, c.registrar), "arith")
	w.awaitTrouble(t, "/mine has the record of")
	w.await(t, "the good ones", length(2))
	if err := r.Slices().Delete(ctx, "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "the list is current", length(2))
}

// Without permission everything fails at once, with advice.
func TestNoPermission(t *testing.T) {
	c := newCluster(t)
	if fake, ok := c.server.(*fakeServer); ok {
		fake.forbid("get leases", "get configmaps", "post configmaps", "list leases")
	}
	r, ctx := c.dial(t, c.client, kubernetes.TTL(testTTL)), regtest.Within(t)
	const say = "see docs/registries.md for the role"
	if err := r.Register(ctx, regtest.Instance("10.0.0.1:1")); !has(err, say) {
		t.Errorf("Register without permission = %v", err)
	}
	if _, err := r.Load(ctx, "rules"); !has(err, say) {
		t.Errorf("Load without permission = %v", err)
	}
	if _, err := r.Save(ctx, registry.Document{Name: "rules", Data: []byte("x")}); !has(err, say) {
		t.Errorf("Save without permission = %v", err)
	}
	wrong := rest.CopyConfig(c.client)
	wrong.BearerToken = "nobody"
	w := watch(t, c.dial(t, wrong), "arith")
	select {
	case err := <-w.ended:
		if !has(err, "check the credentials") {
			t.Errorf("Watch with a wrong token = %v", err)
		}
	case <-ctx.Done():
		t.Error("Watch with a wrong token goes on")
	}
}

// A starting server forbids everything until it has loaded its roles: that is an outage, not a
// permanent error.
func TestServerStarting(t *testing.T) {
	s := newFakeServer(t)
	s.setStarting(true)
	c := &cluster{server: s, namespace: "shop", admin: s.config()}
	r, in := c.dial(t, c.admin), regtest.Instance("10.0.0.1:1")
	w := watch(t, r, "arith")
	w.awaitTrouble(t, "not ready yet")
	registered := make(chan error, 1)
	go func() { registered <- r.Register(regtest.Within(t), in) }()
	s.setStarting(false)
	w.await(t, "the instance", length(1))
	if err := <-registered; err != nil {
		t.Error(err)
	}
}

// A document that was written although the server answered with a timeout is not a conflict, which
// would mean that another process has written it.
func TestWrittenAndTimedOut(t *testing.T) {
	s := newFakeServer(t)
	r := (&cluster{server: s, namespace: "shop"}).dial(t, s.config())
	s.setStutter()
	if _, err := r.Save(regtest.Within(t), registry.Document{Name: "rules", Data: []byte("x")}); err == nil || errors.Is(err, registry.ErrConflict) {
		t.Errorf("Save = %v, want an error that is not a conflict", err)
	}
	if doc, err := r.Load(regtest.Within(t), "rules"); err != nil || string(doc.Data) != "x" {
		t.Errorf("Load = %q, %v", doc.Data, err)
	}
}

// A watch at a version that the server has compacted lists again, without trouble and without a
// gap.
func TestWatchGone(t *testing.T) {
	s := newFakeServer(t)
	c := &cluster{server: s, namespace: "shop", admin: s.config()}
	r, kube, ctx := c.dial(t, c.admin), c.dial(t, c.admin).Slices(), regtest.Within(t)
	w := watch(t, r, "arith")
	w.await(t, "nothing yet", length(0))
	for i := range 20 {
		_, err := kube.Create(ctx, endpointSlice(fmt.Sprint("x-", i), "arith", map[string]int32{"": 9000}, endpoint(fmt.Sprintf("10.0.0.%d", i+1), true, true, false)), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			s.forget()
		}
		if i%5 == 2 {
			w.await(t, "what came after it", length(i+1))
		}
	}
	w.await(t, "all", length(20))
	select {
	case err := <-w.troubles:
		t.Errorf("trouble %v, want none", err)
	default:
	}
	if s.listed() < 5 {
		t.Errorf("%d lists, want one after each 410 Gone", s.listed())
	}
}

// Close closes every connection, while a Watch of the same registry runs.
func TestCloseLeavesNothing(t *testing.T) {
	s := newFakeServer(t)
	c := &cluster{server: s, namespace: "shop", admin: s.config()}
	for range 3 {
		r := c.dial(t, c.admin)
		regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
		w := watch(t, r, "arith")
		w.await(t, "the instance", length(1))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-w.ended; !errors.Is(err, registry.ErrClosed) {
			t.Errorf("Watch ended with %v", err)
		}
		regtest.Eventually(t, regtest.Patience, "no connection is left", func() bool { return s.openConns() == 0 })
	}
}

// The objects of a dead process are deleted by another one.
func TestLeftBehind(t *testing.T) {
	c := newCluster(t)
	r, ctx := c.dial(t, c.registrar), regtest.Within(t)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "anser-dead", Labels: map[string]string{"app.kubernetes.io/managed-by": "anser"}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("anser-dead"), LeaseDurationSeconds: new(int32(30)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-2 * time.Hour))),
		},
	}
	if _, err := r.Leases().Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dead := endpointSlice("dead", "arith", map[string]int32{"anser": 1}, endpoint("10.0.0.9", true, true, false))
	dead.Labels["endpointslice.kubernetes.io/managed-by"], dead.Labels["anser-rpc/owner"] = "anser", "anser-dead"
	if _, err := r.Slices().Create(ctx, dead, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	regtest.Eventually(t, regtest.Patience, "the slice and the Lease of the dead are gone", func() bool {
		held, err1 := r.Leases().List(ctx, metav1.ListOptions{})
		all, err2 := r.Slices().List(ctx, metav1.ListOptions{})
		return errors.Join(err1, err2) == nil && len(held.Items) == 1 && len(all.Items) == 1 && all.Items[0].Name != "dead"
	})
}

func TestWhatCannotBeRegistered(t *testing.T) {
	c := newCluster(t)
	r := c.dial(t, c.registrar)
	for say, in := range map[string]registry.Instance{
		"whose host is an IP address": {Service: "arith", Address: "db.example.com:1"},
		"at most 63 letters":          {Service: "arith-", Address: "10.0.0.1:1"},
		"loopback":                    {Service: "arith", Address: "127.0.0.1:1"},
	} {
		if err := r.Register(regtest.Within(t), in); !has(err, say) {
			t.Errorf("Register(%v) = %v, want %q", in, err, say)
		}
	}
}

// The API server and the credentials come from a kubeconfig.
func TestKubeconfig(t *testing.T) {
	c := newCluster(t)
	in := regtest.Instance("10.0.0.1:1")
	regtest.Register(t, c.dial(t, c.registrar), in)
	ca, err := rest.TLSConfigFor(c.registrar)
	if err != nil || ca.RootCAs == nil {
		t.Fatal("no CA", err)
	}
	data := c.registrar.CAData
	if data == nil {
		if data, err = os.ReadFile(c.registrar.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: other,
		clusters: [{name: here, cluster: {server: %q, certificate-authority-data: %s}}],
		users: [{name: me, user: {token: %s}}],
		contexts: [{name: mine, context: {cluster: here, user: me, namespace: %s}}, {name: other, context: {cluster: here, user: nobody}}]}`,
		c.registrar.Host, base64.StdEncoding.EncodeToString(data), c.registrar.BearerToken, c.namespace)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	resolver, service, err := kubernetes.Scheme(kubernetes.Kubeconfig(file, "mine")).Open(regtest.URL(t, "kubernetes:///arith"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resolver.(*kubernetes.Registry).Close() })
	list, err := registry.List(regtest.Within(t), resolver, service)
	if err != nil || !registry.Equal(list, []registry.Instance{in}) {
		t.Errorf("list %v, %v", list, err)
	}
	if _, err := kubernetes.Dial(kubernetes.Kubeconfig(filepath.Join(t.TempDir(), "none"), "")); !has(err, "set KUBECONFIG") {
		t.Errorf("Dial with a file that is not there = %v", err)
	}
	if _, err := kubernetes.Dial(kubernetes.Config(c.admin), kubernetes.TTL(time.Millisecond)); !has(err, "use 1s or more") {
		t.Errorf("Dial with a short TTL = %v", err)
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string][3]string{
		"kubernetes:///arith":           {"", "arith", ""},
		"kubernetes:///shop/arith":      {"shop", "arith", ""},
		"kubernetes:///shop/arith:grpc": {"shop", "arith", "grpc"},
	} {
		namespace, service, port, err := kubernetes.Parse(regtest.URL(t, target))
		if got := [3]string{namespace, service, port}; err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", target, got, err, want)
		}
	}
	for target, say := range map[string]string{
		"etcd:///arith":                "is not one of kubernetes",
		"kubernetes://shop/arith":      "with three slashes",
		"kubernetes:////arith":         "an empty namespace",
		"kubernetes:///a/b/c":          "kubernetes:///namespace/service:port",
		"kubernetes:///shop/":          "bad service",
		"kubernetes:///shop/arith?x=1": "options of kubernetes.Dial",
		"kubernetes:///shop/arith:":    "an empty port",
	} {
		if _, _, err := kubernetes.Scheme().Open(regtest.URL(t, target)); !has(err, say) {
			t.Errorf("%s: %v, want an error with %q", target, err, say)
		}
	}
}
