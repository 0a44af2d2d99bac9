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

	"github.com/anser-rpc/anser/internal/testusage"
)

const (
	bound      = 2 * time.Minute        // timeout of all operations, on a busy machine too
	impatience = 300 * time.Millisecond // of a client with a server that does nothing; the client may retry
	// stall is the timeout of servers with a client that does nothing. Their good clients must not
	// need as long.
	stall      = 10 * time.Second
	neighbours = 8       // good connections next to the bad one
	bytewise   = 1 << 10 // number of bytes at the beginning and at the end of a row that are sent one by one
)

// table is the result of rows, created once: it is as large as its data.
var table []row

// With -short, TestMain makes the rows run over one transport and in one manner, without the slow
// ones.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		transports = transports[:1]
		delete(manners, "bytewise")
	}
	flag.Set("test.parallel", "48") // rows that run in parallel mostly wait
	table = rows()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // the poller has descriptors of its own
		l.Close()
	}
	before := testusage.Measure()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// Only now does package testing release the resources of the tests.
		if err := before.Compare(); err != nil {
			fmt.Println(err)
			code = 1
		}
		fmt.Println(held.String())
		os.Exit(code)
	}))
}

// tally counts rows by number.
type tally struct {
	mu   sync.Mutex
	rows map[int]bool // whether all parts of the row have passed
}

var held = tally{rows: make(map[int]bool)}

// note records the row when its test ends.
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

// each runs f for the selected rows: one after the other, or concurrently if parallel is set.
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
