package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lib "github.com/golang-jwt/jwt/v5"

	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Callers show their identities by API keys and JSON Web Tokens; the policy names methods without
// their service, and requests that are forwarded to HTTP servers are calls of Gateway.Proxy.
func TestIdentities(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := x509.MarshalPKIXPublicKey(key.Public())
	write(t, dir+"/jwt.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
	write(t, dir+"/tokens.json", fmt.Sprintf(`{"tokens": [{"subject": "billing", "groups": ["ops"], "sha256": %q}]}`, auth.Digest("secret")))
	write(t, dir+"/policy.json", `{"allow": [{"subjects": ["*"], "methods": ["demo.v1.Echo.*"]}, {"groups": ["ops"], "methods": ["Arith.*"]}]}`)
	signed, err := lib.NewWithClaims(lib.SigningMethodES256, lib.MapClaims{"iss": "me", "aud": "gw", "sub": "web", "exp": time.Now().Add(time.Hour).Unix()}).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	serve(t, r, registry.Instance{Service: "echo"}, echo(t))
	g, addr := start(t, r, parse(t, `
auth:
  tokens: `+dir+`/tokens.json
  jwt: {issuer: me, audience: gw, keys: [{file: `+dir+`/jwt.pem}]}
  policy: `+dir+`/policy.json
routes:
- {path: /back, to: [{url: "http://127.0.0.1:1"}]}
`))
	await(t, g, "arith", 1)
	await(t, g, "echo", 4)
	for _, c := range []struct {
		path, token string
		status      int
		want        string
	}{
		{"/arith/Arith.Mul", "", 401, "unauthenticated"},
		{"/Arith.Mul", "wrong", 401, "unauthenticated"},
		{"/back/x", "", 401, "unauthenticated"},
		{"/nowhere/x", "", 401, "unauthenticated"},
		{"/nowhere/x", "secret", 403, "permission_denied"},
		{"/arith/Arith.Mul", "secret", 200, `{"C":56}`},
		{"/Arith.Mul", "secret", 200, `{"C":56}`},
		{"/arith/Arith.Mul", signed, 403, "permission_denied"},
		{"/Arith.Mul", signed, 403, "permission_denied"},
		{"/back/x", "secret", 403, "permission_denied"},
		{"/demo.v1.Echo.Say", "secret", 200, `"te":"billing"`},
		{"/demo.v1.Echo.Say", signed, 200, `"te":"web"`},
	} {
		status, body := post(t, "http://"+addr+c.path, `{"A":7,"B":8}`, "Authorization", "Bearer "+c.token, "Gateway-Caller", "liar")
		if status != c.status || !strings.Contains(strings.ReplaceAll(body, " ", ""), strings.ReplaceAll(c.want, " ", "")) {
			t.Errorf("%s with %.10s: %d %s, want %d %s", c.path, c.token, status, body, c.status, c.want)
		}
	}
}

// A certificate for each host is chosen by the name that the client asks for. Another configuration
// brings others, and a certificate that has expired brings none.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	a := transporttest.NewAuthority(t)
	pair := func(name string, valid time.Duration, hosts ...string) string {
		chain, key := transporttest.Write(t, dir, name, a.Issue(t, valid, hosts...))
		return fmt.Sprintf("  - {chain: %s, key: %s}\n", chain, key)
	}
	config := "tls:\n  certificates:\n"
	one, two := pair("one", time.Hour, "one.test"), pair("two", time.Hour, "two.test")
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, parse(t, config+one+two))
	await(t, g, "arith", 1)
	served := func(name string) string {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool, ServerName: name}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Post("https://"+addr+"/Arith.Mul", "application/json", strings.NewReader(`{"A":7,"B":8}`))
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.TLS.PeerCertificates[0].Subject.CommonName + " " + resp.Proto + " " + string(b)
	}
	for _, name := range []string{"one.test", "two.test"} {
		if got := served(name); got != name+` HTTP/2.0 {"C":56}` {
			t.Error(got)
		}
	}
	if _, err := gateway.Parse("new.yaml", []byte(config+pair("late", -time.Minute, "one.test"))); err == nil || !strings.Contains(err.Error(), "new.yaml:3: the certificate in ") {
		t.Error(err)
	}
	if err := g.Apply(parse(t, config+pair("three", time.Hour, "three.test"))); err != nil {
		t.Fatal(err)
	}
	if got := served("three.test"); got != `three.test HTTP/2.0 {"C":56}` {
		t.Error(got)
	}
	if got := served("one.test"); !strings.Contains(got, "certificate") {
		t.Error(got)
	}
}

// With authorities of clients, a certificate is the identity of its caller.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	a := transporttest.NewAuthority(t)
	chain, key := transporttest.Write(t, dir, "server", a.Issue(t, time.Hour, "127.0.0.1"))
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "echo"}, echo(t))
	g, addr := start(t, r, parse(t, fmt.Sprintf("tls:\n  certificates: [{chain: %s, key: %s}]\n  client_cas: [%s]\n", chain, key, a.Write(t, dir, "ca"))))
	await(t, g, "echo", 4)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: a.Client(t)}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("https://"+addr+"/demo.v1.Echo.Say", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), `"client"`) {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool}}}
	defer stranger.CloseIdleConnections()
	if resp, err := stranger.Post("https://"+addr+"/demo.v1.Echo.Say", "application/json", strings.NewReader(`{}`)); err == nil {
		resp.Body.Close()
		t.Errorf("a caller without a certificate: %d", resp.StatusCode)
	}
}

// Each caller has its own limit, and pages of the origins that are named may call.
func TestLimitsAndOrigins(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, parse(t, "limits: {caller: {per_second: 0.001, burst: 3}}\ncors: {origins: [\"https://app.example\"]}"))
	await(t, g, "arith", 1)
	for i := range 4 {
		status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`)
		if (status == 200) != (i < 3) || i == 3 && (status != 429 || !strings.Contains(body, "resource_exhausted")) {
			t.Errorf("call %d: %d %s", i, status, body)
		}
	}
	if g.Stats().Calls != 3 {
		t.Error("a call over the limit was forwarded")
	}
	if status, _ := post(t, "http://"+addr+"/nothing", "{}", "Origin", "https://app.example"); status != 404 {
		t.Errorf("an origin that may call: %d", status)
	}
	if status, _ := post(t, "http://"+addr+"/nothing", "{}", "Origin", "https://evil.example"); status != 403 {
		t.Errorf("an origin that may not call: %d", status)
	}
	if err := g.Apply(new(gateway.Config)); err != nil {
		t.Fatal(err)
	}
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`); status != 200 {
		t.Errorf("after the limit was taken away: %d %s", status, body)
	}
	if status, _ := post(t, "http://"+addr+"/nothing", "{}", "Origin", "https://app.example"); status != 403 {
		t.Errorf("an origin that may not call any more: %d", status)
	}
}

// A configuration that is invalid, or changes what cannot change, is refused, and the old one
// stays.
func TestRefusedConfiguration(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "arith", 1)
	bad := []*gateway.Config{
		{Listen: "127.0.0.1:1"},
		{Limits: gateway.Limits{Conns: 5}},
		{Routes: []gateway.Route{{Path: "/a"}}},
		{Auth: &gateway.Auth{Tokens: filepath.Join(t.TempDir(), "none.json")}},
	}
	for _, c := range bad {
		if err := g.Apply(c); err == nil {
			t.Errorf("%+v is in force", c)
		}
	}
	if s := g.Stats(); s.ReloadsRefused != int64(len(bad)) || s.Reloads != 0 {
		t.Errorf("%+v", s)
	}
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	for _, c := range bad[2:] {
		if _, err := gateway.New(c, gateway.Options{Registry: r}); err == nil {
			t.Errorf("%+v: a gateway", c)
		}
	}
	if _, err := gateway.New(new(gateway.Config), gateway.Options{}); err == nil {
		t.Error("a gateway without a registry")
	}
}
