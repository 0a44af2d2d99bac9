// Package regtest holds helpers for the tests of all registries: they register instances of the
// service arith, and examine lists and watches. Only tests import it. For the contract of every
// registry see package registrytest.
package regtest

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/awake"
	"github.com/anser-rpc/anser/registry"
)

// Patience is how long a test waits for an event that is immediate on an idle machine.
const Patience = 2 * time.Minute

// service is the service of all tests.
const service = "arith"

// Instance returns an instance of the service arith.
func Instance(address string) registry.Instance {
	return registry.Instance{Service: service, Address: address}
}

// Within returns a context that ends with the test, or after Patience.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Register registers instances.
func Register(t testing.TB, r registry.Registrar, instances ...registry.Instance) {
	t.Helper()
	for _, in := range instances {
		if err := r.Register(Within(t), in); err != nil {
			t.Fatal(err)
		}
	}
}

// Eventually waits until ok returns true, and fails the test if that takes longer than patience.
func Eventually(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// BackWithin is how long an instance may be missing after its registry lost it while its process
// lives. See Back.
const BackWithin = 5 * time.Second

// Back calls lose, which removes instances, and checks that they return within limit, as reported
// by ok. The limit concerns the schedule of the registry, so the clock does not run while the
// machine is paused. A delay of a server in another process still counts, so only one of three
// attempts must be within the limit. A schedule that is too slow fails all of them, since each
// attempt begins right after a write of the registry.
func Back(t testing.TB, limit time.Duration, what string, lose func(), ok func() bool) {
	t.Helper()
	var took []time.Duration
	for range 3 {
		lose()
		clock := awake.Start()
		defer clock.Stop()
		Eventually(t, Patience, what, ok)
		now := clock.Elapsed()
		t.Logf("back after %v: %s", now, what)
		if took = append(took, now); now <= limit {
			return
		}
	}
	t.Errorf("away for %v: %s: want them back within %v", took, what, limit)
}

// TimesOut checks that a call ends with its context, and that its error includes the cause. The
// call has one second, and more if that is too short to learn the cause.
func TimesOut(t testing.TB, what, why string, call func(context.Context) error) {
	t.Helper()
	for limit := time.Second; ; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := call(ctx)
		cancel()
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("%s = %v, want the error of its context", what, err)
			return
		case strings.Contains(err.Error(), why):
			return
		case limit > Patience/4:
			t.Errorf("%s = %v after %v, want the cause %q", what, err, limit, why)
			return
		}
	}
}

// Addresses returns the registry's list for the service arith in the form of Brief, or the error.
func Addresses(t testing.TB, r registry.Resolver) string {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	list, err := registry.List(ctx, r, service)
	if err != nil {
		return err.Error()
	}
	return Brief(list)
}

// AwaitList watches the service arith until the addresses of its instances equal want, and returns
// the instances.
func AwaitList(t testing.TB, r registry.Resolver, want string) (list []registry.Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	found := false
	err := r.Watch(ctx, service, func(in []registry.Instance) {
		if !found {
			list = registry.Clone(in)
			found = Brief(list) == want
		}
		if found {
			cancel()
		}
	}, nil)
	if !found {
		t.Fatalf("the list is %q, %v: want %q", Brief(list), err, want)
	}
	return list
}

// Brief returns the addresses of the instances, separated by spaces.
func Brief(list []registry.Instance) string {
	texts := make([]string, len(list))
	for i, in := range list {
		texts[i] = in.Address
	}
	return strings.Join(texts, " ")
}

// Refused checks that an error is returned at once, contains the text say, and contains no secret.
func Refused(t testing.TB, what string, err error, say string, secrets ...string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), say) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s = %v, want at once an error with %q", what, err, say)
		return
	}
	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s contains the secret %q: %v", what, secret, err)
		}
	}
}

// NoAccess checks that all operations of a registry are refused; see Refused. The document that it
// asks for has the name rules.
func NoAccess(t testing.TB, who string, r registry.Registry, say string, secrets ...string) {
	t.Helper()
	ctx := Within(t)
	_, listing := registry.List(ctx, r, service)
	_, naming := r.Services(ctx)
	all := map[string]error{"Register": r.Register(ctx, Instance("h2:1")), "List": listing, "Services": naming}
	if s, ok := r.(registry.Store); ok {
		_, all["Load"] = s.Load(ctx, "rules")
	}
	for what, err := range all {
		Refused(t, who+": "+what, err, say, secrets...)
	}
	if ctx.Err() != nil {
		t.Errorf("%s was not refused at once", who)
	}
}

// URL parses a target.
func URL(t testing.TB, target string) *url.URL {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// OpensOffline checks that a scheme of that name opens a target although no server runs there,
// that the result can be closed, and that a target without a service is rejected.
func OpensOffline(t *testing.T, s registry.Scheme, name string) {
	t.Helper()
	r, got, err := s.Open(URL(t, name+"://127.0.0.1:1/arith"))
	if err != nil || s.Name != name || got != service {
		t.Fatalf("scheme %q opens the service %q: %v", s.Name, got, err)
	}
	if err := r.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Open(URL(t, name+"://127.0.0.1:1")); err == nil {
		t.Error("a target without a service was accepted")
	}
}
