package jwt_test

import (
	"crypto/ed25519"
	"fmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth/jwt"
)

// A server that admits clients with a token of the issuer.
func Example() {
	public, _, err := ed25519.GenerateKey(nil) // the issuer keeps the private key
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := jwt.New("https://issuer.example.org", "arith", jwt.Keys{{ID: "2026", Key: public}}, jwt.Groups("roles"))
	if err != nil {
		fmt.Println(err)
		return
	}
	s := anser.NewServer(anser.Authenticate(tokens))
	fmt.Println(s.Close())
	// Output: <nil>
}
