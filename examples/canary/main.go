// Command canary moves users to a new version of a service by its traffic rules, share by share,
// and back.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// Answer names the version that has answered.
type Answer struct{ Version string }

// Find is the method of the servers.
const Find anser.Method[anser.None, Answer] = "Users.Find"

// serve runs a server of a version and registers it.
func serve(m *registry.Memory, id, version string) (*anser.Server, error) {
	s := anser.NewServer()
	Find.Handle(s, func(context.Context, *anser.None) (*Answer, error) { return &Answer{version}, nil })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go s.Serve(l)
	return s, m.Register(context.Background(), registry.Instance{Service: "users", ID: id, Version: version, Address: l.Addr().String()})
}

// share makes a call for each of 200 users and prints how many get the new version.
func share(out io.Writer, c *anser.Client, d *route.Document) error {
	for c.Status().Rules == nil || c.Status().Rules.Version < d.Version { // they arrive within a second
		time.Sleep(time.Millisecond)
	}
	canary := 0
	for i := range 200 {
		ctx := anser.WithMetadata(context.Background(), anser.Metadata{"user": fmt.Sprint("user-", i)})
		answer, err := Find.Call(ctx, c, new(anser.None))
		if err != nil {
			return err
		}
		if answer.Version == "2.0" {
			canary++
		}
	}
	fmt.Fprintf(out, "version %d of the rules, %q: %d of 200 users get 2.0\n", d.Version, d.Comment, canary)
	return nil
}

// move makes rules the next version and shows their effect.
func move(out io.Writer, m *registry.Memory, c *anser.Client, base uint64, percent float64) error {
	text := fmt.Sprintf(`{"rules": {"split": [{"name": "canary", "percent": %v, "by": "user", "to": {"version": "2.*"}}]}}`, percent)
	d, err := route.Parse([]byte(text))
	if err != nil {
		return err
	}
	d, err = route.Save(context.Background(), m, "users", base, d.Rules, "ada", fmt.Sprint(percent, " %"))
	if err != nil {
		return err
	}
	return share(out, c, d)
}

func run(out io.Writer) error {
	m := registry.NewMemory()
	defer m.Close()
	for id, version := range map[string]string{"a": "1.0", "b": "1.0", "c": "2.0"} {
		s, err := serve(m, id, version)
		if err != nil {
			return err
		}
		defer s.Close()
	}
	c, err := anser.Dial("memory:///users", m.Scheme("memory"), route.Rules())
	if err != nil {
		return err
	}
	defer c.Close()
	for base, percent := range []float64{0, 10, 50} {
		if err := move(out, m, c, uint64(base), percent); err != nil {
			return err
		}
	}
	if _, err := route.Parse([]byte(`{"rules": {"split": [{"percnt": 10}]}}`)); err != nil {
		fmt.Fprintln(out, err)
	}
	if _, err := route.Save(context.Background(), m, "users", 1, route.RuleSet{}, "bob", "none"); err != nil {
		fmt.Fprintln(out, err)
	}
	d, err := route.Rollback(context.Background(), m, "users", 1, "ada")
	if err != nil {
		return err
	}
	return share(out, c, d)
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
