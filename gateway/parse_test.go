package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func TestParse(t *testing.T) {
	c, err := gateway.Parse("g.yaml", []byte(`
# Comments are allowed.
listen: 127.0.0.1:8080
timeout: 3s
limits: {caller: {per_second: 100}, message: 65536}
routes:
- host: "*.example.org"
  path: /shop
  headers: {x-beta: "1"}
  to:
  - {service: shop, version: "2", weight: 10}
  - {service: shop, weight: 90}
- path: /legacy
  strip: true
  to: [{url: "http://127.0.0.1:9000"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Timeout != 3*time.Second || c.Limits.Caller.PerSecond != 100 || len(c.Routes) != 2 || *c.Routes[0].To[0].Weight != 10 || !c.Routes[1].Strip {
		t.Errorf("%+v", c)
	}
	for _, nothing := range []string{"", "# nothing", "null"} {
		if _, err := gateway.Parse("g.yaml", []byte(nothing)); err != nil {
			t.Error(err)
		}
	}
	if _, err := gateway.Parse("g.json", []byte(`{"routes": [{"path": "/a", "to": [{"service": "a"}]}]}`)); err != nil {
		t.Error(err)
	}
}

// Each mistake is an error that names its line and says what to do.
func TestParseMistakes(t *testing.T) {
	dir := t.TempDir()
	expired, key := transporttest.Write(t, dir, "old", transporttest.NewAuthority(t).Issue(t, -time.Minute, "old.example"))
	for text, want := range map[string]string{
		"lisen: x":                  `g.yaml:1: unknown key "lisen": did you mean "listen"?`,
		"timeout: soon":             `g.yaml:1: timeout: "soon" is not a time, such as 250ms or 10s`,
		"services: arith":           `g.yaml:1: services: want a list`,
		"mcp: {}":                   `g.yaml:1: no method is a tool: allow some, such as Orders.Get*`,
		"mcp: {allow: [\"!A.B\"]}":  `g.yaml:1: no method is a tool`,
		"mcp: {allow: [\"A B\"]}":   `g.yaml:1: the pattern "A B" names no method`,
		"mcp: {alow: [A.B]}":        `g.yaml:1: unknown key "alow": did you mean "allow"?`,
		"hosts: [\"a.example:1\"]":  `g.yaml:1: the host "a.example:1" is not valid`,
		"hosts: [gate.example.]":    `g.yaml:1: the host "gate.example." is not valid`,
		"hosts: [\"*..example\"]":   `g.yaml:1: the host "*..example" is not valid`,
		"hosts: [bücher.example]":   `g.yaml:1: the host "bücher.example" is not valid`,
		"services: [a/b]":           `g.yaml:1: `,
		"auth:\n  # tokens: t.json": "g.yaml:1: auth has no value: give it one, or remove it",
		"services:\nlisten: a:1":    "g.yaml:1: services has no value",
		"tls: {client_cas: ~}":      "g.yaml:1: tls.client_cas has no value",
		"record: null":              "g.yaml:1: record has no value",
		"timeout: 1s\ntimeout: 2s":  `timeout`,
		"routes:\n- path: /a":       "g.yaml:2: the route of line 2 leads to nothing: give it a destination (to)",

		"routes:\n- path: a\n  to: [{service: a}]":                                               `g.yaml:2: the path "a" is not valid`,
		"routes:\n- {path: /a, to: [{service: a}]}\n- {path: /a/, to: [{service: b}]}":           "g.yaml:3: the route of line 3 matches the same as the route of line 2: remove one of them",
		"routes:\n- {path: /a, to: [{service: a}]}\n- {name: b, path: /a/b, to: [{service: b}]}": `g.yaml:3: route "b" matches nothing: the route of line 2 comes first`,
		"routes:\n- {to: [{service: a}]}\n- {host: x.org, to: [{service: b}]}":                   "g.yaml:3: the route of line 3 matches nothing",
		"services: [a]\nroutes:\n- {path: /b, to: [{service: b}]}":                               `g.yaml:3: the service "b" is not one of those under services`,
		"routes:\n- path: /a\n  to:\n  - {service: a, weight: 0}":                                "leads to nothing: the weights of all destinations are 0",
		"routes:\n- path: /a\n  to:\n  - {service: a, url: http://h}":                            "g.yaml:4: a destination is a service or a url, and not both",
		"routes:\n- path: /a\n  to:\n  - {url: ftp://h}":                                         `g.yaml:4: the url "ftp://h" is not that of an HTTP server`,
		"routes:\n- {host: A.org, to: [{service: a}]}":                                           `g.yaml:2: the host "A.org" is not valid`,
		"routes:\n- {path: /a, headers: {X-A: x}, to: [{service: a}]}":                           `write its name in lower case`,
		"tls: {certificates: []}":                                                                "g.yaml:1: there are no certificates",
		"tls:\n  certificates:\n  - {chain: nowhere.pem, key: nowhere.key}":                      "g.yaml:3: open nowhere.pem",
		"tls:\n  certificates:\n  - {chain: " + expired + ", key: " + key + "}":                  "g.yaml:3: the certificate in " + expired + " expired on ",

		"auth: {}":                                     "g.yaml:1: no caller could show its identity",
		"auth: {tokens: nowhere.json}":                 "g.yaml:1: auth: open nowhere.json",
		"auth:\n  jwt: {issuer: i, audience: a}":       "g.yaml:2: there are no keys",
		"auth: {tokens: nowhere.json, policy: p.json}": "p.json",
		"limits: {caller: {per_second: 0}}":            "g.yaml:1: want per_second above 0",
		"limits:\n  conns: -1":                         "g.yaml:2: -1 is below 0",
		"cors: {origins: [example.org]}":               `the origin "example.org" is not valid`,
		"access_log: {sample: 2}":                      "want a sample from 0 to 1",
		"a: &x 1\nb: *x":                               `unknown key "a"`,
		"{":                                            "g.yaml: ",
		"- 1":                                          "want keys with values",
		"limits: {caller: {per_second: many}}":         `"many" is not a number`,
		"record: {share: 2}":                           "g.yaml:1: no Dir",
		"record: {dir: x, methods: ['[']}":             `g.yaml:1: "[" is not a pattern`,
		"retries: {ratio: 2}":                          "want a ratio from 0 to 1",
	} {
		_, err := gateway.Parse("g.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
	if _, err := gateway.Load(filepath.Join(dir, "none.yaml")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("listen: x\nroutes:\n- {path: /a, to: [{service: a, weight: 1}]}\n")
	f.Add("tls: {certificates: [{chain: a, key: b}]}\nauth: {jwt: {keys: [{file: x}]}}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "/") && (strings.Contains(text, "chain") || strings.Contains(text, "file") || strings.Contains(text, "tokens") || strings.Contains(text, "policy")) {
			t.Skip("it would open any file")
		}
		c, err := gateway.Parse("f.yaml", []byte(text))
		if err == nil && c == nil {
			t.Error("no configuration and no error")
		}
	})
}
