package command_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// diagnosis is what "doctor --json" prints.
type diagnosis struct {
	Groups []struct {
		Name     string
		Findings []struct{ Check, Status, Subject, Text, Advice string }
		Timings  []struct {
			Subject string
			Steps   []struct {
				Step   string
				TimeUs int64 `json:"time_us"`
			}
		}
	}
	Passed, Noted, Warned, Failed int
}

func TestDoctor(t *testing.T) {
	at, none := serve(t), unused(t)
	run(t, "doctor", at).expect(t, 0, "server "+at, "✓ speaks Anser, version 1", "this machine", " 0 failed")
	r := run(t, "doctor", none)
	r.expect(t, 1, "✘ "+none+" refuses connections", "→ no process listens there: start the server", ", 1 failed")
	if r.err != "" {
		t.Errorf("the error is said twice: %q", r.err)
	}
	run(t, "doctor", at, none).expect(t, 1, "server "+at, "server "+none)
	verbose := run(t, "doctor", at, "-v")
	verbose.expect(t, 0, "time  "+at+": connect ", ", handshake ", ", description ")
	if strings.Contains(verbose.out, "\x1b") {
		t.Errorf("colours without a terminal: %q", verbose.out)
	}

	var d diagnosis
	run(t, "doctor", none, "--json").decode(t, &d)
	if len(d.Groups) != 2 || d.Failed != 1 || d.Groups[0].Findings[0].Check != "tcp" || d.Groups[0].Findings[0].Status != "fail" || d.Groups[0].Findings[0].Advice == "" {
		t.Errorf("%+v", d)
	}
	if steps := d.Groups[0].Timings[0].Steps; len(steps) != 1 || steps[0].Step != "connect" {
		t.Errorf("%+v", steps)
	}
}

func TestDoctorOfASystem(t *testing.T) {
	at := serve(t)
	url, _ := fileRegistry(t,
		registry.Instance{Service: "arith", ID: "arith-1", Address: at, Version: "1.0"},
		registry.Instance{Service: "arith", ID: "arith-2", Address: serve(t), Version: "2.0"},
		registry.Instance{Service: "echo", ID: "echo-1", Address: unused(t)})
	system := run(t, "doctor", "--registry", url)
	system.expect(t, 1, "registry "+url, "service arith", "✓ 2 instances answer", "‼ instances of several versions are up", "service echo", "none of the instances answers")
	for _, args := range [][]string{{"doctor", "arith", "--registry", url}, {"doctor", url + "/arith"}} {
		r := run(t, args...)
		r.expect(t, 0, "service arith", "‼ instances of several versions", " 0 failed")
		if strings.Contains(r.out, "service echo") {
			t.Errorf("%q examined another service", args)
		}
		run(t, append(args, "--strict")...).expect(t, 1, " 0 failed")
	}
	c, err := anser.Dial(url+"/arith", anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run(t, "doctor", "arith", "--registry", url, "--from", serveDebug(t, route.NewRecorder(), c)).expect(t, 0, "clients in ", "calls of arith can go to all instances")
	run(t, "doctor", "nope", "--registry", url).expect(t, 1, "service nope", "no instance is registered")
	run(t, "doctor", "etcd://"+unused(t)).expect(t, 1, "refuses connections")
	run(t, "__complete", "doctor", "--registry", url, "").expect(t, 0, "arith\n", "echo\n")
	run(t, "__complete", "doctor", "--registry", url, "arith", "").expect(t, 0, "arith\n", "echo\n")
}

func TestDoctorWithTLS(t *testing.T) {
	a, dir := transporttest.NewAuthority(t), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secureServer(t, l, a.Server(t, true))
	cert, key := transporttest.Write(t, dir, "me", a.Client(t).Certificates[0])
	at, ca := l.Addr().String(), a.Write(t, dir, "ca")
	run(t, "doctor", at, "--ca", ca, "--cert", cert, "--key", key).expect(t, 0, "✓ TLS 1.3", "the certificate is for 127.0.0.1", "describes 1 method ")
	run(t, "doctor", at, "--ca", ca, "--cert", cert, "--key", key, "--server-name", "other.test").expect(t, 1, "✘ the certificate is not for other.test")
	run(t, "doctor", at, "--ca", ca).expect(t, 0, "‼ the server does not take this client", "--cert and --key")
	run(t, "doctor", "tls://"+at).expect(t, 1, "✘ the server sends its own certificate alone", "give the authority's certificate with --ca")
	run(t, "doctor", at).expect(t, 1, "✘ the port speaks TLS", "use --tls")
}

func TestDoctorEscapesTheNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(nc, "\x1b]0;owned\x07\u009b2J\u202e\r\n")
			nc.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	for _, flags := range [][]string{nil, {"--json"}, {"--verbose"}} {
		r := run(t, append([]string{"doctor", l.Addr().String()}, flags...)...)
		if r.code != 1 || strings.ContainsAny(r.out+r.err, "\x1b\x07\u009b\u202e") {
			t.Errorf("%d: %q %q", r.code, r.out, r.err)
		}
	}
}

func TestDoctorErrors(t *testing.T) {
	for say, args := range map[string][]string{
		"has no port: use host:port": {"localhost"},
		"unknown scheme":             {"gopher://h:1"},
		"that no client could dial":  {"h:0"},
		"holds no certificate":       {"h:1", "--ca", "doctor_test.go"},
		"use a time above 0":         {"--timeout", "0s"},
		"names no server":            {"--registry", "etcd://"},
		"does not support TLS":       {"--registry", "file:///x.json", "--registry-tls"},
		"unknown flag: --unknown":    {"--unknown"},
		"has a user in it":           {"etcd://me:secret@h:1"},
	} {
		r := run(t, append([]string{"doctor"}, args...)...)
		r.expect(t, 2, say)
		if strings.Contains(r.out+r.err, "secret") {
			t.Errorf("%q shows a password", args)
		}
	}
}
