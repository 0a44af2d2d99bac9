//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// start runs a server until the end of the test binary, which is the only way to stop it, and
// returns the address it reported. After each client the channel receives the server's CPU time.
func start(t *testing.T, o options, serve func(net.Conn)) (string, <-chan map[string]any) {
	t.Helper()
	r, w := io.Pipe()
	go listen(o, w, serve)
	lines := make(chan map[string]any, 8)
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			var m map[string]any
			if err := json.Unmarshal(s.Bytes(), &m); err != nil {
				m = map[string]any{"error": err.Error()}
			}
			lines <- m
		}
	}()
	addr, ok := (<-lines)["addr"].(string)
	if !ok {
		t.Fatal("the server's first line has no address")
	}
	return addr, lines
}

func TestLoad(t *testing.T) {
	for _, test := range []struct {
		name string
		o    options
	}{
		{"tcp vt", options{network: "tcp", addr: "127.0.0.1:0"}},
		{"tcp std", options{network: "tcp", addr: "127.0.0.1:0", codec: codec{std: true}}},
		{"unix vt", options{network: "unix", addr: filepath.Join(t.TempDir(), "s")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.o
			o.callers, o.calls, o.conns = 20, 2000, 2
			var lines <-chan map[string]any
			o.addr, lines = start(t, o, func(c net.Conn) { answer(c, o.codec) })
			figures := load(o)
			if figures["calls"] != 2000 {
				t.Errorf("calls = %v, want 2000", figures["calls"])
			}
			if figures["p50_us"].(float64) <= 0 || figures["p50_us"].(float64) > figures["max_us"].(float64) {
				t.Errorf("implausible percentiles: %v", figures)
			}
			if cpu, ok := (<-lines)["server_cpu_s"].(float64); !ok || cpu < 0 {
				t.Errorf("server_cpu_s = %v", cpu)
			}
		})
	}
}

func TestPingPong(t *testing.T) {
	o := options{network: "tcp", addr: "127.0.0.1:0", calls: 200}
	var lines <-chan map[string]any
	o.addr, lines = start(t, o, echo)
	figures := pingPong(o)
	if figures["bytes"] != frameBytes || figures["calls"] != 200 {
		t.Errorf("figures: %v", figures)
	}
	if _, ok := (<-lines)["server_cpu_s"]; !ok {
		t.Error("the server did not report its CPU time")
	}
}
