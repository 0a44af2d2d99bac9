package measure

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/result"
)

func TestClientArgs(t *testing.T) {
	base := result.Shape{Callers: 10, Conns: 5, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: 2.5}
	for _, c := range []struct {
		change func(*result.Shape)
		i      int
		want   string
	}{
		{func(*result.Shape) {}, 0, "--callers 10 --window 1 --rate 0 --warmup 0.5 --seconds 2.5 --calls 0 --payload 581 --conns 5"},
		{func(s *result.Shape) { s.Conns = 0 }, 0, "--callers 10 --window 1 --rate 0 --warmup 0.5 --seconds 2.5 --calls 0 --payload 581 --conns 0"},
		{func(s *result.Shape) { s.Fresh, s.Payload = true, 0 }, 0, "--callers 10 --window 1 --rate 0 --warmup 0.5 --seconds 2.5 --calls 0 --fresh"},
		{func(s *result.Shape) { s.Clients, s.Calls, s.Rate, s.Window = 4, 102, 1000, 7 }, 0, "--callers 3 --window 7 --rate 300 --warmup 0.5 --seconds 2.5 --calls 26 --payload 581 --conns 2"},
		{func(s *result.Shape) { s.Clients, s.Calls, s.Rate, s.Window = 4, 102, 1000, 7 }, 3, "--callers 2 --window 7 --rate 200 --warmup 0.5 --seconds 2.5 --calls 25 --payload 581 --conns 1"},
	} {
		shape := base
		c.change(&shape)
		j := &Job{Client: []string{"x", "client"}, Workload: "say", Shape: shape, Warmup: 0.5}
		want := "x client --addr a:1,b:2 --workload say " + c.want
		if got := strings.Join(j.clientArgs(c.i, "a:1,b:2"), " "); got != want {
			t.Errorf("%s, want\n%s", got, want)
		}
	}
	j := &Job{Server: []string{"x", "server"}, Shape: result.Shape{SleepUS: 5, WorkUS: 6}}
	if got := strings.Join(j.serverArgs("a:1"), " "); got != "x server --addr a:1 --sleep-us 5 --work-us 6" {
		t.Errorf("%s", got)
	}
}

func TestLasts(t *testing.T) {
	for _, c := range []struct {
		shape result.Shape
		want  time.Duration
	}{
		{result.Shape{Seconds: 5}, 7 * time.Second},
		{result.Shape{Calls: 3000}, 5 * time.Second},
		{result.Shape{Calls: 3000, Rate: 300}, 12 * time.Second},
	} {
		if got := (&Job{Shape: c.shape, Warmup: 2}).lasts(); got != c.want {
			t.Errorf("%+v lasts %v, want %v", c.shape, got, c.want)
		}
	}
}

func TestPort(t *testing.T) {
	address, err := port("127.0.0.1", "")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(address)
	if n, _ := strconv.Atoi(text); err != nil || n < leastPort || n >= mostPort {
		t.Errorf("%s, %v", address, err)
	}
	if address, err := port("192.0.2.1", "elsewhere"); err != nil || !strings.HasPrefix(address, "192.0.2.1:") {
		t.Errorf("%s, %v", address, err)
	}
	if address, err := port("192.0.2.1", ""); err == nil { // an address that is not of this machine
		t.Errorf("%s is free", address)
	}
}
