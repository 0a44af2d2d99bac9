package badinput_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	bound      = 2 * time.Minute        // within which everything has to happen, on a busy machine too
	impatience = 300 * time.Millisecond // of a client with a server that does nothing, which the client may try again
	// stall is the patience of servers with a client that does nothing. Their good clients must not need as much.
	stall      = 10 * time.Second
	neighbours = 8       // good connections beside the bad one
	bytewise   = 1 << 10 // so many bytes at the beginning of a row, and at its end, are sent one by one
	heapGrowth = 8 << 20
	// Everything is back soon after a row, which is 5 s: so many looks, with a pause before each. A machine
	// that does not let the test look has more time.
	lookPause = 10 * time.Millisecond
	looks     = int(5 * time.Second / lookPause)
)

// soon reports whether ok has become true soon.
func soon(ok func() bool) bool {
	for range looks {
		if ok() {
			return true
		}
		time.Sleep(lookPause)
	}
	return ok()
}

// table is what rows returns, made once: it is as large as what it sends.
var table []row

// TestMain has the rows sent over one transport and in one manner with -short, without those that take long.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		transports = transports[:1]
		delete(manners, "bytewise")
	}
	flag.Set("test.parallel", "48") // rows that run in parallel wait
	table = rows()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // the poller has descriptors of its own
		l.Close()
	}
	before := measure()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// Only now does package testing let go of what the tests had.
		if err := before.compare(); err != nil {
			fmt.Println(err)
			code = 1
		}
		fmt.Println(held.String())
		os.Exit(code)
	}))
}

// tally counts rows by their numbers.
type tally struct {
	mu   sync.Mutex
	rows map[int]bool // whether everything of the row has passed
}

var held = tally{rows: make(map[int]bool)}

// note enters the row when its test ends.
func (y *tally) note(t *testing.T, number int) {
	t.Cleanup(func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		before, seen := y.rows[number]
		y.rows[number] = !t.Failed() && (before || !seen)
	})
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for _, ok := range y.rows {
		if ok {
			n++
		}
	}
	return fmt.Sprintf("%d rows, %d held", len(y.rows), n)
}

// each runs f for the rows that are tried: one after the other, or with parallel at the same time.
func each(t *testing.T, parallel bool, tried func(row) bool, f func(t *testing.T, r row)) {
	seen := make(map[int]int)
	for _, r := range table {
		name := fmt.Sprintf("row%02d", r.number)
		if n := seen[r.number]; n > 0 {
			name += suffix(n)
		}
		seen[r.number]++
		if !tried(r) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			t.Log(r.name, r.note)
			held.note(t, r.number)
			f(t, r)
		})
	}
}

// suffix returns b, c, …, z, ba, bb, … for 1, 2, …
func suffix(n int) string {
	s := ""
	for ; n > 0; n /= 26 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}
