package doctor_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/wire"
)

// A client whose options do not fit cannot ask the server for its methods.
func TestOptionsThatDoNotFit(t *testing.T) {
	c := &doctor.Config{Timeout: time.Minute, Dial: []anser.DialOption{anser.ConnectTimeout(-1)}}
	g := examine(t, c, serve(t))
	expect(t, g, "description", doctor.Fail, "the server cannot be asked: ", "ConnectTimeout", "correct the flags")
}

// A server whose observer is broken answers no call.
func TestServerThatFailsItsCalls(t *testing.T) {
	at := serve(t, anser.Observe(anser.Observer{Request: func(context.Context, anser.MessageInfo) error {
		return anser.Errorf(anser.Internal, "no \x1b[2Jdisk")
	}}))
	g := examine(t, patient, at)
	expect(t, g, "description", doctor.Fail, "the call failed: ", `no \x1b[2Jdisk`, "look into the log of the server")
}

// A server that begins as Anser does and goes on with something else.
func TestServerThatBreaksTheProtocol(t *testing.T) {
	g := examine(t, patient, plainServer(t, func(nc net.Conn) {
		begin := make([]byte, len(wire.Magic))
		if _, err := io.ReadFull(nc, begin); err == nil && string(begin) == string(wire.Magic[:]) {
			nc.Write(wire.AppendPing(wire.AppendPreface(nil), wire.TypePing, 1))
			discard(nc)
		}
	}))
	expect(t, g, "handshake", doctor.Fail, "the handshake failed: the first frame is PING", "look into the log of the server")
}

// A way to another machine without TLS, by a name that leads here.
func TestNoTLSOnTheWay(t *testing.T) {
	_, port, err := net.SplitHostPort(serve(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &doctor.Config{Timeout: time.Minute, Resolver: serveDNS(t, map[string][][4]byte{"one.test": {{127, 0, 0, 1}}}, true)}
	g := examine(t, c, "one.test.:"+port)
	expect(t, g, "tls", doctor.Warn, "no TLS: the network between can read and change calls", "use TLS")
}

// An instance may have an address of a transport that the command does not speak.
func TestAddressOfAnotherTransport(t *testing.T) {
	g := examine(t, patient, "kcp://"+plainServer(t, discard))
	expect(t, g, "handshake", doctor.Note, "kcp:// is not a transport of this command: only the connection was examined")
	without(t, g, doctor.Warn, doctor.Fail)
}

// A server that offers HTTP/1.1 alone over TLS cannot be reached by clients of gRPC.
func TestTLSWithoutHTTP2(t *testing.T) {
	a := authority.New("the authority")
	at := serve(t, protocols.All(), anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue()}, NextProtos: []string{anser.ALPN, "http/1.1"}}))
	config := &tls.Config{RootCAs: a.Pool}
	g := examine(t, &doctor.Config{Timeout: time.Minute, TLS: config, Dial: []anser.DialOption{anser.TLS(config)}}, at)
	expect(t, g, "protocols", doctor.Warn, "the port speaks HTTP/1.1 over TLS and not HTTP/2", "offer h2 by ALPN")
	expect(t, g, "tls", doctor.Pass, "TLS 1.3")
	expect(t, g, "tls.chain", doctor.Pass, "the chain is complete: issued by the authority")
}

// A registry in DNS has no list of services.
func TestRegistryWithoutAList(t *testing.T) {
	reg, _ := system(t, at("dns:///{service}.example.org:8972"))
	expect(t, reg, "registry", doctor.Warn, "the registry cannot list services", "name services")
}

// consul returns the URL of an agent of Consul that answers questions for instances with f.
func consul(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-Index", "1")
			w.Write([]byte(text))
		})
	}
	answer("/v1/status/leader", `"10.0.0.1:8300"`)
	answer("/v1/catalog/services", `{"arith": []}`)
	mux.HandleFunc("/v1/health/service/arith", f)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return "consul://" + s.Listener.Addr().String()
}

// Instances that the registry does not tell, because this user may not read them or because it
// fails, and a record that is not valid among others.
func TestRecordsOfARegistry(t *testing.T) {
	_, g := system(t, at(consul(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Permission denied: token lacks 'service:read'", http.StatusForbidden)
	})), "arith")
	expect(t, g, "registry.records", doctor.Fail, "the instances cannot be read: ", "Permission denied", "look at the registry")

	g = hastilyAt(t, consul(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "rpc error: \x1b[2Jno path to datacenter", http.StatusInternalServerError)
	}), "no path to datacenter")
	expect(t, g, "registry.records", doctor.Fail, "the instances cannot be read: ", `\x1b[2Jno path to datacenter`, "without one, look at the registry")

	_, g = system(t, at(consul(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-Index", "1")
		w.Write([]byte(`[{"Node": {"Node": "n", "Address": "10.0.0.9"}, "Service": {"ID": "old", "Service": "arith", "Port": 0}, "Checks": []}]`))
	})), "arith")
	expect(t, g, "registry.records", doctor.Warn, "consul service old", "10.0.0.9:0", "clients leave the instance out")
	expect(t, g, "instances", doctor.Fail, "no instance is registered")
}

// explaining returns the address of a process with a client of arith for these instances.
func explaining(t *testing.T, reg registry.Resolver, opts ...anser.DialOption) string {
	t.Helper()
	scheme := registry.Scheme{Name: "test", Open: func(*url.URL) (registry.Resolver, string, error) { return reg, "arith", nil }}
	c, err := anser.Dial("test://h:1/arith", append(opts, scheme, silent, anser.NoSnapshot(), anser.Balancer(balance.RoundRobin()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := anser.NewServer(silent, anser.NoSignals())
	if err := route.ServeExplain(s, map[string]*anser.Client{"arith": c}); err != nil {
		t.Fatal(err)
	}
	return listen(t, s)
}

// fixed is a registry that does not look at what it is given.
type fixed []registry.Instance

func (f fixed) Watch(ctx context.Context, _ string, update func([]registry.Instance), _ func(error)) error {
	update(f)
	<-ctx.Done()
	return ctx.Err()
}

var oneMethod = []doctor.Service{{Name: "arith", Methods: []string{"Arith.Mul"}}}

// The client of a process leaves out a record that is not valid.
func TestProcessWithInvalidRecord(t *testing.T) {
	list := fixed{{Service: "arith", ID: "good", Address: serve(t)}, {Service: "arith", ID: "bad", Address: "0.0.0.0:1"}}
	g := patient.Process(t.Context(), explaining(t, list), oneMethod)
	expect(t, g, "registry.records", doctor.Warn, "the record of bad of arith is not valid: ", "means every interface", "correct the record")
}

// The client of a process has nothing to call, and does not follow the rules of its service.
func TestProcessWithoutInstances(t *testing.T) {
	reg := registry.NewMemory()
	if _, err := reg.Save(t.Context(), registry.Document{Name: "rules/arith", Data: []byte(`{"version": 1, "rules": {}}`)}); err != nil {
		t.Fatal(err)
	}
	at := explaining(t, reg)
	g := patient.Process(t.Context(), at, oneMethod)
	expect(t, g, "clients", doctor.Fail, "calls of arith have no instance: ")
	for deadline := time.Now().Add(time.Minute); ; { // the client learns of the rules behind its first list
		g = patient.Process(t.Context(), at, oneMethod)
		if contains(g, "does not follow traffic rules") || time.Now().After(deadline) {
			break
		}
	}
	expect(t, g, "rules", doctor.Note, "the client of arith does not follow traffic rules, which the registry keeps")
}
