package workload

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	p := &Program{Name: "peer"}
	s, err := p.serverOptions(strings.Fields("--addr h:1 --sleep-us 1500 --work-us 2 --slots 3"))
	if err != nil || s.Addr != "h:1" || s.Sleep != 1500*time.Microsecond || s.Work != 2*time.Microsecond || cap(s.slots) != 3 {
		t.Errorf("server options %+v, error %v", s, err)
	}
	c, err := p.clientOptions(strings.Fields("--addr h:1,h:2 --workload add --callers 3 --conns 0 --fresh --rate 1.5 --warmup 0.5 --seconds 2 --payload 64"))
	if err != nil || c.Connections() != 3 || c.Addr(0) != "h:1" || c.Addr(1) != "h:2" || c.Addr(2) != "h:1" || !c.Fresh ||
		c.Workload != "add" || c.Rate != 1.5 || c.Warmup != 500*time.Millisecond || c.Measured != 2*time.Second || c.Payload != 64 || c.Window != 1 {
		t.Errorf("client options %+v, error %v", c, err)
	}
}

func TestUsage(t *testing.T) {
	silence(t)
	async := func(context.Context, *ClientOptions) (func(int) Start, func(), error) {
		return nil, nil, errors.New("opened")
	}
	for args, usage := range map[string]bool{
		"":                                            true,
		"serve":                                       true,
		"server":                                      true,
		"server --addr h:1 now":                       true,
		"server --addr h:1 --fast":                    true,
		"server --addr h:1 --sleep-us -1":             true,
		"client":                                      true,
		"client --addr h:1 --mode x":                  true,
		"client --addr h:1 --workload mul":            true,
		"client --addr h:1 --callers 0":               true,
		"client --addr h:1 --window 0":                true,
		"client --addr h:1 --rate NaN":                true,
		"client --addr h:1 --seconds 0":               true,
		"client --addr h:1 --warmup -1":               true,
		"client --addr h:1 --payload 63":              true,
		"server --addr h:1 --slots -1":                true,
		"client --addr h:1 --deadline-ms 5":           true,
		"client --addr h:1 --deadline-ms -1 --rate 5": true,
		"client --addr h:1 --async":                   false,
		"client --addr h:1 --async --own":             false,
		"client --addr h:1 --async --calls 1":         false,
		"client --addr h:1 --async=1 --conns 0":       false,
	} {
		p := &Program{Name: "peer", OpenAsync: async, Flags: func(f *flag.FlagSet) { f.Bool("own", false, "") }}
		err := p.run(strings.Fields(args))
		if err == nil || errors.Is(err, errUsage) != usage {
			t.Errorf("%q: %v", args, err)
		}
	}
	sync := &Program{Name: "peer"}
	if err := sync.run([]string{"client", "--addr", "h:1", "--async"}); !errors.Is(err, errUsage) {
		t.Errorf("--async without an asynchronous API: %v", err)
	}
}

// silence keeps what package flag prints out of the test's output.
func silence(t *testing.T) {
	stderr := os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = w
	done := make(chan struct{})
	go func() { io.Copy(io.Discard, r); close(done) }()
	t.Cleanup(func() { os.Stderr = stderr; w.Close(); <-done; r.Close() })
}
