package protocols_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/interceptor/accesslog"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// bound is how soon a change ends what is open; docs/security.md promises it.
const bound = 2 * time.Second

func tokensAndRules(t *testing.T, st *stay) {
	st.begin(t)
	st.enter(t, st.ann).want(t, "Open", "ann", anser.OK)
	st.enter(t, st.bob).want(t, "Open", "bob", anser.OK)
	st.enter(t, st.ann).want(t, "Locked", "ann", anser.OK)
	st.enter(t, st.bob).want(t, "Locked", "", anser.PermissionDenied)
	st.enter(t, "").want(t, "Open", "", anser.Unauthenticated)
	st.enter(t, "wrong").want(t, "Open", "", anser.Unauthenticated)
	for _, name := range []string{"open", "Locked.", "Nothing", "Locked/Open"} {
		for _, r := range st.enter(t, st.bob).try(t, name) {
			if r.code != anser.PermissionDenied && r.code != anser.Unimplemented || r.subject != "" {
				t.Errorf("%s of %q gets %q, %v", r.how, name, r.subject, r.code)
			}
		}
	}
	if st.Stats().Denied == 0 || len(st.Stats().Unauthenticated) == 0 {
		t.Errorf("counters: %d denied, %v", st.Stats().Denied, st.Stats().Unauthenticated)
	}
}

func withdrawn(t *testing.T, st *stay) {
	st.begin(t)
	v := st.enter(t, st.bob)
	v.want(t, "Open", "bob", anser.OK)
	if err := st.policy.Set(auth.Rules{Allow: []auth.Rule{{Methods: []string{"test.Doors.Locked", "test.Doors.LockedStream"}, Subjects: []string{"bob"}}}}); err != nil {
		t.Fatal(err)
	}
	v.want(t, "Open", "", anser.PermissionDenied) // on the same connection, at once
	v.want(t, "Locked", "bob", anser.OK)
	if err := st.tokens.Set(st.grants()[0]); err != nil {
		t.Fatal(err)
	}
	time.Sleep(bound)
	for _, r := range v.try(t, "Locked") {
		if r.code != anser.Unauthenticated && r.code != anser.Unavailable { // the connection has ended
			t.Errorf("%s of a caller whose token was withdrawn gets %q, %v", r.how, r.subject, r.code)
		}
	}
	st.enter(t, st.bob).want(t, "Locked", "", anser.Unauthenticated)
}

func certificates(t *testing.T, st *stay) {
	authority := transporttest.NewAuthority(t)
	var revoked atomic.Bool
	byCertificate := anser.AuthenticatorFunc(func(ctx context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
		id, err := auth.MutualTLS().Authenticate(ctx, l)
		if err == nil {
			id.Revoked = revoked.Load
		}
		return id, err
	})
	policy, err := auth.NewPolicy(rules)
	if err != nil {
		t.Fatal(err)
	}
	st.beginWith(t, anser.TLS(authority.Server(t, true)), anser.Authenticate(byCertificate), anser.Authorize(policy))
	as := func(name string) *visitor {
		config := authority.Client(t)
		config.ServerName = "127.0.0.1"
		config.Certificates = nil
		if name != "" {
			config.Certificates = []tls.Certificate{authority.Issue(t, time.Hour, name)}
		}
		return st.enterBy(t, &door{tls: config})
	}
	ann := as("ann")
	ann.want(t, "Open", "ann", anser.OK)
	ann.want(t, "Locked", "ann", anser.OK)
	as("bob").want(t, "Locked", "", anser.PermissionDenied)
	for _, r := range as("").try(t, "Open") {
		if r.code == anser.OK || r.subject != "" {
			t.Errorf("%s without a certificate gets %q, %v", r.how, r.subject, r.code)
		}
	}
	ends := st.stays(t, ann)
	revoked.Store(true)
	st.mustEnd(t, ends, anser.Unauthenticated, bound)
}

func expiry(t *testing.T, st *stay) {
	byTime := anser.AuthenticatorFunc(func(context.Context, *anser.AuthRequest) (*anser.Identity, error) {
		return &anser.Identity{Subject: "ann", Expires: time.Now().Add(10 * time.Second)}, nil
	})
	policy, err := auth.NewPolicy(rules)
	if err != nil {
		t.Fatal(err)
	}
	st.beginWith(t, anser.Authenticate(byTime), anser.Authorize(policy))
	v := st.enter(t, "short")
	v.want(t, "Open", "ann", anser.OK)
	st.mustEnd(t, st.stays(t, v), anser.Unauthenticated, 10*time.Second+bound)
}

func revocation(t *testing.T, st *stay) {
	st.begin(t)
	v := st.enter(t, st.ann)
	v.want(t, "Locked", "ann", anser.OK)
	ends := st.stays(t, v)
	if err := st.tokens.Set(st.grants()[1]); err != nil {
		t.Fatal(err)
	}
	st.mustEnd(t, ends, anser.Unauthenticated, bound)
	if n := st.Stats().CutOff; n == 0 {
		t.Error("no call was counted as cut off")
	}
}

func changeOfPolicy(t *testing.T, st *stay) {
	st.begin(t)
	v := st.enter(t, st.ann)
	ends := st.stays(t, v)
	if err := st.policy.Set(auth.Rules{Allow: rules.Allow[:1]}); err != nil {
		t.Fatal(err)
	}
	st.mustEnd(t, ends, anser.PermissionDenied, bound)
	dials := st.dials.Load()
	v.want(t, "Open", "ann", anser.OK)
	if n := st.dials.Load(); n != dials && v.watch == nil {
		t.Errorf("the connection has not lasted")
	}
}

func limitOfCaller(t *testing.T, st *stay) {
	l, err := ratelimit.New(ratelimit.Caller(ratelimit.ByIdentity, ratelimit.Rate{PerSecond: 0.001, Burst: 3}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	st.begin(t, anser.Observe(l.Observer()))
	v := st.enter(t, st.ann)
	for n := 0; n < 3; {
		for _, r := range v.try(t, "Open") {
			want := anser.OK
			if n++; n > 3 {
				want = anser.ResourceExhausted
			}
			if r.code != want {
				t.Errorf("%s number %d gets %v", r.how, n, r.code)
			}
		}
	}
	st.enter(t, st.ann).want(t, "Open", "", anser.ResourceExhausted)
	if r := st.enter(t, st.bob).try(t, "Open"); r[0].code != anser.OK {
		t.Errorf("another caller gets %v", r[0].code)
	}
}

func priority(t *testing.T, st *stay) {
	var seen atomic.Int64
	st.begin(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			seen.Store(int64(anser.PriorityFrom(ctx)))
			return next(ctx, inv)
		}
	}))
	v := st.enter(t, st.ann)
	ctx := anser.WithPriority(t.Context(), anser.Critical)
	want := anser.Critical
	if st.lacks {
		want = anser.Normal
	}
	check := func(how string) {
		if got := anser.Priority(seen.Swap(-1)); got != want {
			t.Errorf("%s has the priority %v, want %v", how, got, want)
		}
	}
	if v.call != nil {
		v.call(ctx, "Open")
		check("a call")
	}
	if v.watch != nil {
		v.watch(ctx, "OpenStream", func(string) {})
		check("a stream")
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func accessLog(t *testing.T, st *stay) {
	var out lines
	log, err := accesslog.New(slog.New(slog.NewJSONHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	st.begin(t, anser.Intercept(log))
	v := st.enter(t, st.ann)
	v.try(t, "Open")
	if v.call != nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if subject, code := v.call(ctx, "OldLocked"); subject != "ann" || code != anser.OK {
			t.Errorf("an alias gets %q, %v", subject, code)
		}
	}
	synctest.Wait()
	got := make(map[string]int)
	for dec := json.NewDecoder(&out.text); ; {
		var line struct{ Side, Method, Code, Peer string }
		if dec.Decode(&line) != nil {
			break
		}
		if line.Side != "server" || line.Code != "ok" || line.Peer == "" {
			t.Errorf("the log has %+v", line)
		}
		got[line.Method]++
	}
	for method, want := range map[string]bool{"test.Doors.Open": v.call != nil, "test.Doors.Locked": v.call != nil, "test.Doors.OpenStream": v.watch != nil} {
		if (got[method] == 1) != want {
			t.Errorf("%s is %d times in the log", method, got[method])
		}
	}
}

func drain(t *testing.T, st *stay) {
	st.begin(t)
	ends := st.stays(t, st.enter(t, st.ann))
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		down <- st.Shutdown(ctx)
	}()
	time.Sleep(time.Minute)
	for _, r := range st.enter(t, st.ann).try(t, "Open") {
		if r.code != anser.Unavailable {
			t.Errorf("%s of a new client gets %v", r.how, r.code)
		}
	}
	close(st.leave)
	st.mustEnd(t, ends, anser.OK, bound)
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func identities(t *testing.T, st *stay) {
	st.begin(t)
	d := &door{token: st.ann}
	v := st.enterBy(t, d)
	for range 3 {
		d.token = st.ann
		v.want(t, "Locked", "ann", anser.OK)
		d.token = st.bob
		if st.lacks {
			v.want(t, "Locked", "ann", anser.OK) // the connection is hers
			continue
		}
		v.want(t, "Open", "bob", anser.OK)
		v.want(t, "Locked", "", anser.PermissionDenied)
	}
	if n := st.dials.Load(); n != 1 && v.call != nil {
		t.Errorf("%d connections were made", n)
	}
}
