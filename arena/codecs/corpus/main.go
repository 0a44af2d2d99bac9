// Corpus compares protobuf codecs on messages of several kinds, in turns, and prints a table: the
// code of "anser gen", vtproto's, the standard library, and hyperpb, which only decodes.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/anser-rpc/anser/arena/codecs/internal/corpus"
)

func main() {
	rounds := flag.Int("rounds", 11, "measurements of each codec, of which the median counts")
	each := flag.Duration("each", 50*time.Millisecond, "time of one measurement")
	only := flag.String("only", "", "measure only messages whose name contains this")
	flag.Parse()
	if flag.NArg() > 0 || *rounds <= 0 || *each <= 0 {
		fmt.Fprintln(os.Stderr, "corpus: no arguments, and --rounds and --each must be more than 0")
		os.Exit(2)
	}
	if err := run(os.Stdout, *rounds, *each, *only); err != nil {
		fmt.Fprintf(os.Stderr, "corpus: %v\n", err)
		os.Exit(1)
	}
}

// run prints a row for each message and direction: the time of the first codec, and the others'
// times by that of the first, with their allocations.
func run(w io.Writer, rounds int, each time.Duration, only string) error {
	fmt.Fprintln(w, "| message | bytes | direction | Anser's code | vtproto's | standard library | hyperpb | hyperpb, memory reused |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, c := range corpus.All() {
		if !strings.Contains(c.Name, only) {
			continue
		}
		t, err := newTrial(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		for _, direction := range []struct {
			name    string
			subject []subject
		}{{"encode", t.encode}, {"decode", t.decode}} {
			results := measure(direction.subject, rounds, each)
			fmt.Fprintf(w, "| %s | %d | %s |", c.Name, len(t.data), direction.name)
			for i, r := range results {
				fmt.Fprintf(w, " %.0f ns, %d allocs", r.ns, r.allocs)
				if i > 0 {
					fmt.Fprintf(w, ", %.2f ×", r.ratio)
				}
				fmt.Fprint(w, " |")
			}
			fmt.Fprintln(w, strings.Repeat(" – |", 5-len(results)))
		}
	}
	return nil
}
