package callers_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bound is how long a client or the build of the server may take.
const bound = 2 * time.Minute

// start builds and runs the server with further flags, and returns its address.
func start(t *testing.T, flags ...string) string {
	t.Helper()
	address, _ := run(t, build(t), flags...)
	return address
}

// build builds the server.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "server")
	output(t, "", "go", "build", "-o", program, "./server")
	return program
}

// run runs the server, which drains when the test ends or earlier by stop.
func run(t *testing.T, program string, flags ...string) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	cmd := exec.Command(program, append([]string{"-listen", address}, flags...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(bound, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not drain: %v", err)
		}
	})
	t.Cleanup(stop)
	for end := time.Now().Add(bound); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address, stop
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// output runs a program in a folder, and returns what it prints.
func output(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off")
	var errOut strings.Builder
	cmd.Stderr = &errOut
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: scripts/suites/callers gets what this needs\n%s%s", name, strings.Join(args, " "), err, text, &errOut)
	}
	return string(text)
}

// pages has the files that each page shows.
var pages = map[string][]string{
	"browser": {"browser/prepare", "browser/connect.js", "browser/grpcweb.js", "browser/socket.js"},
	"python":  {"python/prepare", "python/client.py"},
	"java":    {"java/prepare", "java/src/main/java/callers/Client.java"},
	"curl":    {"curl/calls.sh", "curl/grpcurl.sh"},
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "callers", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The pages show the programs unchanged.
func TestPagesShowThePrograms(t *testing.T) {
	for name, files := range pages {
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page(t, name), "\n"+string(source)+"```\n") {
				t.Errorf("docs/callers/%s.md does not show %s as it is: copy the file into its block", name, file)
			}
		}
	}
}

// shown reports output that a page does not show. The JSON of protobuf has spaces by chance.
func shown(t *testing.T, name, got string) {
	t.Helper()
	if !shows(t, name, got) {
		t.Errorf("docs/callers/%s.md does not show this output:\n%s", name, got)
	}
}

func shows(t *testing.T, name, got string) bool {
	t.Helper()
	plain := strings.NewReplacer(`, "`, `,"`, `: {`, `:{`)
	return strings.Contains(plain.Replace(page(t, name)), "\n```\n"+plain.Replace(got)+"```\n")
}

// patiently returns what f returns once it is good. The deadlines of the streams in the pages are
// short, and pass before a message has come on a machine that is busy.
func patiently(f func() string, good func(got string) bool) (got string) {
	for range 6 {
		if got = f(); good(got) {
			break
		}
	}
	return got
}

// The stock client of Python: all kinds of calls, in clear text and over TLS.
func TestPython(t *testing.T) {
	t.Parallel()
	shown(t, "python", output(t, "python", ".venv/bin/python", "client.py", start(t)))
	ca, flags := certificate(t)
	shown(t, "python", output(t, "python", ".venv/bin/python", "client.py", start(t, flags...), ca))
}

// The stock client of Java: the same.
func TestJava(t *testing.T) {
	t.Parallel()
	run := []string{"-cp", "target/classes:target/lib/*", "callers.Client"}
	shown(t, "java", output(t, "java", "java", append(run, start(t))...))
	ca, flags := certificate(t)
	shown(t, "java", output(t, "java", "java", append(run, start(t, flags...), ca)...))
}

func TestCurl(t *testing.T) {
	t.Parallel()
	shown(t, "curl", output(t, "curl", "./calls.sh", "http://"+start(t)))
}

func TestGrpcurl(t *testing.T) {
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	shown(t, "curl", output(t, "curl", "./grpcurl.sh", start(t)))
}

// ghz finds the method by reflection, and no call fails.
func TestGhz(t *testing.T) {
	t.Parallel()
	address := start(t)
	text := output(t, "", "../../bin/ghz", "--insecure", "--call", "orders.v1.Orders.Place", "-d", `{"item": "tea"}`, "-n", "500", "-c", "20", address)
	if !strings.Contains(text, "[OK]   500 responses") {
		t.Error(text)
	}
}

// Pages call in Chromium: of the server's own origin, of one that is allowed, and of others, whose
// calls are refused.
func TestBrowser(t *testing.T) {
	t.Parallel()
	host := start(t, "-pages", "browser/pages")
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	other := "http://localhost:" + port
	open := start(t, "-pages", "browser/pages", "-origin", other)
	closed := start(t, "-pages", "browser/pages")
	show := func(urls ...string) string {
		return output(t, "browser", "node", append([]string{"show.js", "/usr/bin/chromium"}, urls...)...)
	}
	showNew := func(name string) {
		t.Helper()
		got := patiently(func() string { return show("http://" + start(t, "-pages", "browser/pages") + name) }, func(got string) bool { return shows(t, "browser", got) })
		shown(t, "browser", got)
	}
	showNew("/connect.html")
	for _, name := range []string{"connect", "grpcweb"} {
		allowed := patiently(func() string { return show(other + "/" + name + ".html?server=http://" + open) }, func(got string) bool { return strings.Contains(got, "watched 1: tea") })
		if !strings.Contains(allowed, "tea for ann") || !strings.Contains(allowed, "item: want tea or coffee") || !strings.Contains(allowed, "watched 1: tea") || !strings.Contains(allowed, "out of time: ") || strings.Contains(allowed, "fail") {
			t.Errorf("%s, from an origin that is allowed:\n%s", name, allowed)
		}
		refused := show(other + "/" + name + ".html?server=http://" + closed)
		if strings.Contains(refused, "placed") || !strings.Contains(refused, "failed: ") {
			t.Errorf("%s, from an origin that is not allowed:\n%s", name, refused)
		}
	}
	showNew("/grpcweb.html")
	showNew("/socket.html")
	// No page is asked before a browser opens a WebSocket: the server must look at its origin.
	allowed := show(other + "/socket.html?server=http://" + open)
	if !strings.Contains(allowed, "found ") || !strings.Contains(allowed, "closed with 1000") {
		t.Errorf("WebSocket, from an origin that is allowed:\n%s", allowed)
	}
	if refused := show(other + "/socket.html?server=http://" + closed); !strings.HasPrefix(refused, "closed with 1006\nfailed: ") {
		t.Errorf("WebSocket, from an origin that is not allowed:\n%s", refused)
	}
}

// certificate returns a file with an authority, and the flags of a server with a certificate of it.
func certificate(t *testing.T) (ca string, flags []string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "callers"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put := func(name, kind string, data []byte) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ca = put("server.pem", "CERTIFICATE", der)
	return ca, []string{"-cert", ca, "-key", put("server.key", "PRIVATE KEY", private)}
}
