// Command auth is a server that authenticates its callers, and lets each of them call what a
// policy allows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

type (
	Order   struct{ Item string }
	Receipt struct{ Text string }
)

func place(ctx context.Context, in *Order) (*Receipt, error) {
	return &Receipt{Text: in.Item + " for " + anser.IdentityFrom(ctx).Subject}, nil
}

func refund(ctx context.Context, in *Order) (*Receipt, error) {
	return &Receipt{Text: in.Item + " is refunded by " + anser.IdentityFrom(ctx).Subject}, nil
}

const (
	clerksOnly = `{"allow": [{"subjects": ["*"], "methods": ["Shop.Order"]}, {"groups": ["clerks"], "methods": ["Shop.*"]}]}`
	forAll     = `{"allow": [{"subjects": ["*"], "methods": ["Shop.*"]}]}`
)

func run(out io.Writer) error {
	dir, err := os.MkdirTemp("", "auth")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	policyFile := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(policyFile, []byte(clerksOnly), 0o600); err != nil {
		return err
	}
	// A server stores digests: an attacker with access to its table cannot use the tokens.
	anns, bobs := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(
		auth.Grant{Subject: "ann", SHA256: auth.Digest(anns), Groups: []string{"clerks"}},
		auth.Grant{Subject: "bob", SHA256: auth.Digest(bobs)},
	)
	if err != nil {
		return err
	}
	policy, err := auth.OpenPolicy(policyFile, auth.Poll(10*time.Millisecond))
	if err != nil {
		return err
	}
	defer policy.Close()

	s := anser.NewServer(anser.Authenticate(tokens), anser.Authorize(policy))
	anser.Handle(s, "Shop.Order", place)
	anser.Handle(s, "Shop.Refund", refund)
	l, err := net.Listen("tcp", "127.0.0.1:0") // any other address also requires anser.TLS
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()

	try := func(who string, c *anser.Client, method string) {
		r, err := anser.Call[Receipt](context.Background(), c, method, &Order{Item: "tea"})
		if e, ok := errors.AsType[*anser.Error](err); ok {
			fmt.Fprintf(out, "%-8s %-11s  %s\n", who, method, e.Code)
			return
		}
		fmt.Fprintf(out, "%-8s %-11s  %s\n", who, method, r.Text)
	}
	for _, who := range []struct {
		name string
		opts []anser.DialOption
	}{
		{"ann", []anser.DialOption{auth.Token(anns)}},
		{"bob", []anser.DialOption{auth.Token(bobs)}},
		{"mallory", []anser.DialOption{auth.Token("a guess")}},
		{"nobody", nil},
	} {
		c, err := anser.Dial(l.Addr().String(), who.opts...)
		if err != nil {
			return err
		}
		defer c.Close()
		try(who.name, c, "Shop.Order")
		try(who.name, c, "Shop.Refund")
		if who.name != "bob" {
			continue
		}
		// A changed file also applies to existing connections.
		before := policy.Version()
		if err := os.WriteFile(policyFile, []byte(forAll), 0o600); err != nil {
			return err
		}
		for policy.Version() == before {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Fprintln(out, "the policy changes")
		try(who.name, c, "Shop.Refund")
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
