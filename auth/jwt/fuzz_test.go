package jwt_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/auth/jwt"
)

// hs256 signs any header and claims.
func hs256(secret, header, claims []byte) string {
	e := base64.RawURLEncoding
	text := e.EncodeToString(header) + "." + e.EncodeToString(claims)
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(text))
	return text + "." + e.EncodeToString(h.Sum(nil))
}

// FuzzVerifier tries tokens: any text, and any header and claims signed with the issuer's key.
// Text without a signature is never accepted, and a signed token only if it comes from the issuer,
// for the audience, has a subject, and is valid now.
func FuzzVerifier(f *testing.F) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	header := []byte(`{"alg":"HS256","kid":"m","typ":"JWT"}`)
	for _, claims := range []string{
		`{"iss":"me","aud":["other","shop"],"sub":"ann","groups":["ops","x"],"exp":4102444800,"iat":1700000000,"nbf":1700000000}`,
		`{"iss":"me","aud":"shop","sub":"ann","groups":"ops","exp":4102444800.5}`,
		`{"iss":"me","aud":"shop","sub":"","exp":4102444800}`, `{"iss":"me","aud":"shop","sub":7,"exp":4102444800}`, `{"iss":"me","aud":"shop","sub":"ann","exp":1e300}`,
		`{"iss":"me","aud":"shop","sub":"ann","exp":-1}`, `{"iss":"me","aud":["shop",7],"sub":"ann","exp":"4102444800"}`, `{"iss":null}`, `[]`, `null`, ``,
		`{"iss":"me","aud":"shop","sub":"ann","sub":"bob","exp":1,"exp":4102444800}`,
	} {
		f.Add(hs256([]byte("another secret, which is as long"), header, []byte(claims)), header, []byte(claims))
	}
	for _, h := range []string{`{"alg":"none"}`, `{"alg":"HS256"}`, `{"alg":"HS512","kid":"m"}`, `{"alg":"EdDSA","kid":"m"}`, `{"alg":"HS256","kid":7}`, `{"alg":"HS256","kid":"m","crit":["b64"],"b64":false}`, `null`} {
		f.Add("a.b.c", []byte(h), []byte(`{"iss":"me","aud":"shop","sub":"ann","exp":4102444800}`))
	}
	f.Add("..", []byte("{}"), []byte("{}"))
	v, err := jwt.New("me", "shop", jwt.Keys{{ID: "m", Key: secret}})
	if err != nil {
		f.Fatal(err)
	}
	authenticate := func(token string) (*anser.Identity, error) {
		return v.Authenticate(context.Background(), &anser.AuthRequest{Scheme: auth.SchemeToken, Data: []byte(token)})
	}
	f.Fuzz(func(t *testing.T, text string, header, claims []byte) {
		if id, err := authenticate(text); err == nil {
			t.Fatalf("%q is taken as %s, without the key", text, id.Subject)
		}
		token := hs256(secret, header, claims)
		id, err := authenticate(token)
		if err != nil {
			return
		}
		if _, err := authenticate(token[:len(token)-2] + "AA"); err == nil && !strings.HasSuffix(token, "AA") {
			t.Fatal("it is taken with another signature, too")
		}
		var head, c map[string]any // in a map every name has one spelling
		if json.Unmarshal(header, &head) != nil || json.Unmarshal(claims, &c) != nil {
			t.Fatalf("the header %q with the claims %q is taken", header, claims)
		}
		audience, _ := json.Marshal(c["aud"])
		late := float64(time.Now().Add(-time.Minute).Unix()) // the leeway is 30 s
		subject, _ := c["sub"].(string)
		end, _ := c["exp"].(float64)
		if head["alg"] != "HS256" || c["iss"] != "me" || subject == "" || !strings.Contains(string(audience), `"shop"`) || end < late {
			t.Fatalf("the header %q with the claims %q is taken", header, claims)
		}
		if id.Subject != subject || id.Revoked() {
			t.Fatalf("it is taken as %+v, its subject is %q", id, subject)
		}
		if !time.Now().Before(id.Expires) {
			t.Fatalf("the identity has ended already, at %v, with the claims %q", id.Expires, claims)
		}
	})
}
