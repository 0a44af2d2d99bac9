package auth_test

import (
	"context"
	"fmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// Clients send a token, and a policy defines what its owner may call.
func Example() {
	token := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{SHA256: auth.Digest(token), Subject: "ann", Groups: []string{"readers"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Groups: []string{"readers"}, Methods: []string{"Book.Get"}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := anser.NewServer(anser.Authenticate(tokens), anser.Authorize(policy))
	for _, name := range []string{"Book.Get", "Book.Put"} {
		anser.Handle(s, name, func(ctx context.Context, title *string) (*string, error) { return title, nil })
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String(), auth.Token(token))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	title := "Dubliners"
	for _, name := range []string{"Book.Get", "Book.Put"} {
		_, err := anser.Call[string](context.Background(), c, name, &title)
		fmt.Println(name, anser.CodeOf(err))
	}
	// Output:
	// Book.Get ok
	// Book.Put permission denied
}
