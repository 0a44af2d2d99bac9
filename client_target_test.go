package anser_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// closable is a resolver that records its end.
type closable struct {
	*feed
	closed int
}

func (c *closable) Close() error {
	c.closed++
	return nil
}

func (c *closable) scheme(service string) registry.Scheme {
	return registry.Scheme{Name: "closable", Open: func(*url.URL) (registry.Resolver, string, error) { return c, service, nil }}
}

// A resolver that can be closed is closed with its client, even if Dial failed.
func TestResolverIsClosed(t *testing.T) {
	r := &closable{feed: newFeed()}
	_, err := anser.Dial("closable://x", silent, r.scheme("not a name"))
	if err == nil || !strings.Contains(err.Error(), `target "closable://x": service name "not a name"`) || r.closed != 1 {
		t.Fatal(err, r.closed)
	}
	c := dial(t, "closable://x", r.scheme("arith"))
	c.Close()
	c.Close()
	if r.closed != 2 {
		t.Errorf("closed %d times", r.closed)
	}
}

func TestTargetMistakes(t *testing.T) {
	f := newFeed()
	for target, want := range map[string]string{
		"":                  "the target is empty: use host:port, or a scheme such as tcp://a:1,b:2",
		"localhost":         `target "localhost": address "localhost" has no port: use host:port`,
		"localhost:":        `target "localhost:": address "localhost:" has no port: use host:port`,
		":8972":             `target ":8972": address ":8972" has no host that a client could dial: use host:port`,
		"a:1,b":             `target "a:1,b": address "b" has no port: use host:port`,
		"a:1,a:1":           `target "a:1,a:1": a:1 occurs twice`,
		"tcp://":            `target "tcp://": address "" has no port: use host:port`,
		"tcp://a:1,":        `target "tcp://a:1,": address "" has no port: use host:port`,
		"unix://":           `target "unix://": address "unix://" has no path: use unix:///path`,
		"etcd://h:2379/x":   `target "etcd://h:2379/x": unknown scheme "etcd": this client knows fed, file, tcp, tls, unix; others are options of Dial, such as etcd.Scheme() or quic.Transport()`,
		"u:secret@a:1":      "an address of the target has a user: leave it out",
		"tcp://a:1,owl://b": `target "tcp://a:1,owl://b": address "b" has no port`,
		"tcp://a:1,o://b:2": `target "tcp://a:1,o://b:2": unknown scheme "o": this client knows file, tcp, tls, unix;`,
		"http://a:1":        `unknown scheme "http"`,
		"fed://%zz":         `target "fed://%zz": parse`,
		"file://relative/x": `target "file://relative/x": want file:///path/registry.json/service`,
	} {
		c, err := anser.Dial(target, silent, f.scheme())
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Dial(%q): %v\nwant %s", target, err, want)
		}
	}
}

// A list of addresses is a target, with or without its scheme.
func TestListOfAddresses(t *testing.T) {
	network := new(ansertest.Network)
	for _, a := range []string{"a:1", "b:1"} {
		serve(t, network.Listen(a), hello(a))
	}
	for _, target := range []string{"a:1,b:1", "tcp://a:1,b:1", " a:1 , b:1 ", "tcp://a:1,tcp://b:1"} {
		c := dial(t, target, anser.Dialer(network.Dial))
		reach(t, c, 4)
		if n := len(c.Status().Instances); n != 2 {
			t.Errorf("%q: %d instances", target, n)
		}
	}
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	if st := c.Status(); st.Target != "a:1" || st.Instances[0].Connected || st.Instances[0].Down || st.Instances[0].Active != 0 {
		t.Errorf("%+v", st)
	}
	reach(t, c, 1)
	if st := c.Status(); !st.Instances[0].Connected || st.Instances[0].Latency <= 0 {
		t.Errorf("%+v", st)
	}
}

// foreign is a DialOption of another package.
type foreign struct{}

func (foreign) DialOption() {}

func TestForeignOption(t *testing.T) {
	_, err := anser.Dial("a:1", foreign{})
	if err == nil || err.Error() != "dial option of type anser_test.foreign is not one of package anser, an anser.Transport or a registry.Scheme" {
		t.Error(err)
	}
}

// The options of a client apply to its calls, and those of a call to that call.
func TestOptionsOfACall(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Fail.Always": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		return nil, anser.Errorf(anser.Aborted, "attempt %d", anser.AttemptFrom(ctx))
	}})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Attempts(2), anser.Idempotent(), anser.RetryOn(anser.Aborted))
	for want, opts := range map[string][]anser.CallOption{
		"attempt 1": nil, "attempt 0": {anser.Attempts(1)}, "attempt 3": {anser.Attempts(4)},
	} {
		_, err := call(context.Background(), c, "Fail.Always", "", opts...)
		if e := wantFault(t, err, anser.Aborted, anser.Executed); e.Message != want {
			t.Errorf("%s, want %s", e.Message, want)
		}
	}
}

// The password of a target is in nothing that a client says of it.
func TestPasswordsOfTargets(t *testing.T) {
	r := &closable{feed: newFeed()}
	for _, target := range []string{"closable://user:hunter2@a:1,b:2/arith", "closable://a:1,user:hunter2@b:2/arith"} {
		told := ""
		c := dial(t, target, r.scheme("arith"), anser.Observe(anser.Observer{
			CallEnded: func(_ context.Context, info *anser.CallInfo) { told = info.Target },
		}))
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the call ends without an instance
		_, err := anser.Call[int](ctx, c, "A.B", new(int))
		x, _ := c.Explain(ctx, "A.B")
		for _, text := range []string{told, c.Status().Target, fmt.Sprint(x), fmt.Sprint(err)} {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s has the password", text)
			}
		}
		if !strings.HasPrefix(told, "closable://") || !strings.HasSuffix(told, "/arith") {
			t.Errorf("observers are told %s", told)
		}
	}
	for _, target := range []string{
		"closable://user:hunter2@a:1/not a name", "closable://user:hunter 2@a:1/x", "closable://user:hunter2/x@a:1/x", "unknown://user:hunter2@a:1/x",
		"tcp://user:hunter2@a:1,b:2",
	} {
		_, err := anser.Dial(target, silent, r.scheme("not a name"))
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
