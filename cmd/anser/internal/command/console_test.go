package command_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/command"
)

func TestConsole(t *testing.T) {
	run(t, "console", "--listen", "0.0.0.0:0").expect(t, 2, "the console has no login", "ssh -L")
	run(t, "console", "--listen", "127.0.0.1").expect(t, 2, "has no port")
	run(t, "console", "--registry", "dns:///{service}.example:1").expect(t, 2, "the console needs a registry that can")
	run(t, "demo", "--console", "0.0.0.0:1", "--for", "1s").expect(t, 2, "the console has no login")
	run(t, "console", "--prometheus", "127.0.0.1:9090").expect(t, 2, "is not the URL of a Prometheus")
	run(t, "console", "--also", "dns:///{service}.example:1").expect(t, 2, "the console needs a registry that can")
	run(t, "console", "--also", "nowhere").expect(t, 2, "is not a URL")
	run(t, "console", "--allow-changes").expect(t, 2, "use --audit FILE")
	run(t, "console", "--users", "/nowhere/users.json").expect(t, 2, "no such file")
	run(t, "console", "--audit", filepath.Join(t.TempDir(), "a"), "--registry", "nacos://127.0.0.1:1").expect(t, 2, "supports no rules")
}

func TestConsoleLoginFlags(t *testing.T) {
	for want, args := range map[string]string{
		"need --oidc-issuer":              "--oidc-client-id x",
		"need --proxy-header":             "--proxy-role look",
		"--proxy-from needs":              "--proxy-from 10.0.0.1",
		"--oidc-issuer needs --url":       "--oidc-issuer https://id.example.org",
		"use GROUP=ROLE":                  "--oidc-issuer https://id.example.org --url http://localhost:1/ --oidc-role ops",
		`unknown role "root"`:             "--oidc-issuer https://id.example.org --url http://localhost:1/ --oidc-role ops=root",
		"the client id":                   "--oidc-issuer https://id.example.org --url http://localhost:1/ --oidc-role ops=look",
		"--oidc-secret-file: open /none":  "--oidc-issuer https://id.example.org --url http://localhost:1/ --oidc-secret-file /none",
		"does not describe itself":        "--oidc-issuer http://127.0.0.1:1 --url http://localhost:1/ --oidc-role *=look --oidc-client-id x",
		"use an address or a prefix":      "--proxy-header X-User --proxy-from proxy.example",
		"use the form of IPv4":            "--proxy-header X-User --proxy-from ::ffff:10.0.0.0/104 --proxy-role look",
		"is no header that a proxy":       "--proxy-header X_User --proxy-from 10.0.0.1 --proxy-role look",
		"name them with --proxy-from":     "--proxy-header X-User --proxy-role look",
		"--proxy-role: unknown role":      "--proxy-header X-User --proxy-from 10.0.0.1 --proxy-role root",
		"users of the proxy have no role": "--proxy-header X-User --proxy-from 10.0.0.1",
	} {
		run(t, append([]string{"console"}, strings.Fields(args)...)...).expect(t, 2, want)
	}
}

func TestConsoleUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.json")
	runWith(t, "correct horse\n", "console", "user", "add", "ada", "--role", "operate", "--users", file).expect(t, 0, "ada may operate")
	runWith(t, "battery staple", "console", "user", "add", "bob", "--users", file).expect(t, 0, "bob may look")
	run(t, "console", "user", "list", "--users", file).expect(t, 0, "ada", "operate", "bob", "look")
	run(t, "console", "user", "list", "--json", "--users", file).expect(t, 0, `"name": "ada"`)
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "horse") || !strings.Contains(string(data), "$2a$12$") {
		t.Errorf("%v\n%s", err, data)
	}
	run(t, "console", "user", "remove", "bob", "--users", file).expect(t, 0, "bob can no longer log in")
	run(t, "console", "user", "remove", "bob", "--users", file).expect(t, 1, `has no user "bob"`)
	runWith(t, "short\n", "console", "user", "add", "eve", "--users", file).expect(t, 1, "use 10 to 72")
	runWith(t, "correct horse\n", "console", "user", "add", "eve", "--role", "root", "--users", file).expect(t, 2, "unknown role")
	run(t, "console", "user", "add", "eve").expect(t, 2, "--users is missing")
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "console"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// startConsole runs "anser console" and returns its URL.
func startConsole(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, ended := new(printed), make(chan int, 1)
	go func() {
		ended <- command.Run(ctx, append([]string{"console"}, args...), strings.NewReader(""), out, out)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, after, _ := strings.Cut(out.String(), " at http")
		if line, _, ok := strings.Cut(after, "\n"); ok {
			return "http" + line
		}
		if time.Now().After(deadline) {
			t.Fatalf("no address:\n%s", out)
		}
	}
}

// A console that all machines reach needs a login, and TLS except with --proxy-header, and changes
// nothing unless that is allowed.
func TestPublicConsole(t *testing.T) {
	twoVersions(t)
	file := filepath.Join(t.TempDir(), "users.json")
	runWith(t, "correct horse\n", "console", "user", "add", "ada", "--role", "operate", "--users", file).expect(t, 0, "ada may operate")
	run(t, "console", "--listen", "0.0.0.0:0", "--users", file).expect(t, 2, "would not be encrypted")
	help := strings.Join(strings.Fields(run(t, "console", "--help").out), " ")
	if !strings.Contains(help, "needs a login, and TLS except with --proxy-header") || !strings.Contains(help, "or with --proxy-header also without") {
		t.Error(help)
	}
	cert, key := certificate(t)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, allowed := range []bool{false, true} {
		args := []string{"--listen", "0.0.0.0:0", "--users", file, "--tls-cert", cert, "--tls-key", key, "--audit", audit}
		want := 403
		if allowed {
			args, want = append(args, "--allow-changes"), 200
		}
		t.Run(fmt.Sprint(allowed), func(t *testing.T) {
			at := startConsole(t, args...)
			if !strings.HasPrefix(at, "https://localhost:") {
				t.Fatalf("it is at %s", at)
			}
			base := at + "api/"
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			t.Cleanup(client.CloseIdleConnections)
			if status, text := send(t, client, "GET", base+"system", "", ""); status != 401 {
				t.Errorf("without a login: %d %s", status, text)
			}
			if status, text := send(t, client, "POST", base+"login", "", `{"user":"ada","password":"correct horse"}`); status != 204 {
				t.Fatalf("the login: %d %s", status, text)
			}
			drain := `{"service":"arith","instance":"arith-1","state":"draining"}`
			if status, text := send(t, client, "POST", base+"instances", csrfToken(t, client, base), drain); status != want {
				t.Errorf("a change: %d %s, want %d", status, text, want)
			}
		})
	}
}
