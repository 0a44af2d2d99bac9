// Files measures on this machine what a file transfer reaches, against the same bytes over a bare
// connection, and what calls on the same connection pay. It prints a table. Nothing is asserted:
// time depends on the machine and on what else it does.
//
//	go run ./e2e/files --help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

const usage = `Usage: go run ./e2e/files [flags]

Sends and fetches a file with package filetransfer, and over a bare TCP connection: with the same
checksum on both sides, and with none. Both write the file to a directory, sync and rename it. The
server is a separate process. The compared programs run alternately, round by round; each ratio is
that of one round. Then it measures sequential calls, without and during a transfer on the same
connection.

Flags:
`

type options struct {
	dir    string
	size   int64
	rounds int
	calls  int
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("files: ")
	if len(os.Args) == 3 && os.Args[1] == "process-server" {
		if err := serve(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	var o options
	mib := flag.Int64("size", 1024, "size of the file in MiB")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.IntVar(&o.calls, "calls", 5000, "calls without a transfer, and during each transfer")
	flag.StringVar(&o.dir, "dir", "", "directory for the files; default: a file system in memory, if there is one")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.size = *mib << 20; o.size <= 0 || o.rounds < 1 || o.calls < 1 || flag.NArg() > 0 {
		log.Fatal("--size, --rounds and --calls must be positive, and there are no other arguments")
	}
	if err := run(o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run measures everything.
func run(o options, w io.Writer) (err error) {
	if _, err := os.Stat("/dev/shm"); err == nil && o.dir == "" {
		o.dir = "/dev/shm"
	}
	dir, err := os.MkdirTemp(o.dir, "anser-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	near, far := filepath.Join(dir, "near"), filepath.Join(dir, "far")
	if err := errors.Join(os.Mkdir(near, 0o755), os.Mkdir(far, 0o755)); err != nil {
		return err
	}
	if err := fillFile(filepath.Join(near, "source"), o.size); err != nil {
		return err
	}
	s, err := start(far)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	// Both share one connection.
	c, err := anser.Dial(s.at.Anser, anser.Conns(1), anser.NoSnapshot())
	if err != nil {
		return err
	}
	defer c.Close()
	table, err := compare(o, c, s, near)
	if err != nil {
		return err
	}
	besides, err := measureCalls(o, c, near)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d MiB in %s, %d rounds\n\n", o.size>>20, o.dir, o.rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tchecksum\tMiB/s\tbare MiB/s\tratio (least – most)\tCPU s/GiB\tbare CPU s/GiB\tratio\tspeed of a bare copy without checksum")
	for _, r := range table {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%s\t%.2f\t%.2f\t%s\t%s\n", r.way, r.sum, median(r.own), median(r.bare), ratio(r.own, r.bare),
			median(r.ownCPU), median(r.bareCPU), ratio(r.ownCPU, r.bareCPU), ratio(r.own, r.plain))
	}
	fmt.Fprintf(t, "\ncalls\tp50 µs\tp99 µs\tmost µs\n")
	for _, b := range besides {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\n", b.what, at(b.took, 0.5), at(b.took, 0.99), at(b.took, 1))
	}
	return t.Flush()
}

// row is one way with one checksum, with a value for each round: MiB a second, and seconds of
// processor time of both processes for a GiB.
type row struct {
	way              string
	sum              filetransfer.Checksum
	own, bare, plain []float64
	ownCPU, bareCPU  []float64
}

func compare(o options, c *anser.Client, s *server, near string) ([]*row, error) {
	ctx := context.Background()
	source := filepath.Join(near, "source")
	var table []*row
	for _, sum := range []filetransfer.Checksum{filetransfer.SHA256, filetransfer.CRC32C} {
		table = append(table, &row{way: "put", sum: sum}, &row{way: "get", sum: sum})
	}
	rate := func(f func() error) (mib, cpu float64, err error) {
		before, err := bothTimes(ctx, c)
		if err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := f(); err != nil {
			return 0, 0, err
		}
		took := time.Since(began)
		after, err := bothTimes(ctx, c)
		return float64(o.size) / (1 << 20) / took.Seconds(), (after - before) / float64(o.size) * (1 << 30), err
	}
	for range o.rounds {
		for _, r := range table {
			transfer := func() error {
				_, err := filetransfer.Put(ctx, c, source, "remote", r.sum)
				return err
			}
			if r.way == "get" {
				transfer = func() error {
					_, err := filetransfer.Get(ctx, c, "remote", filepath.Join(near, "fetched"), r.sum)
					return err
				}
			}
			own, ownCPU, err := rate(transfer)
			if err != nil {
				return nil, err
			}
			bare, bareCPU, err := rate(func() error { return bareCopy(s.at.Bare, r.way, r.sum.String(), near, o.size) })
			if err != nil {
				return nil, err
			}
			plain, _, err := rate(func() error { return bareCopy(s.at.Bare, r.way, "none", near, o.size) })
			if err != nil {
				return nil, err
			}
			r.ownCPU, r.bareCPU = append(r.ownCPU, ownCPU), append(r.bareCPU, bareCPU)
			r.own, r.bare, r.plain = append(r.own, own), append(r.bare, bare), append(r.plain, plain)
		}
	}
	return table, nil
}

// bothTimes returns the processor time of this process and the server's.
func bothTimes(ctx context.Context, c *anser.Client) (float64, error) {
	far, err := anser.Call[float64](ctx, c, "Echo.CPU", &anser.None{})
	if err != nil {
		return 0, err
	}
	return processorTime() + *far, nil
}

// concurrent holds the latencies of calls during a transfer, in µs.
type concurrent struct {
	what string
	took []float64
}

func measureCalls(o options, c *anser.Client, near string) ([]*concurrent, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in := make([]byte, 581)
	calls := func(b *concurrent) error {
		for range o.calls {
			began := time.Now()
			if _, err := anser.Call[[]byte](ctx, c, "Echo.Bytes", &in); err != nil {
				return err
			}
			b.took = append(b.took, float64(time.Since(began).Nanoseconds())/1e3)
		}
		return nil
	}
	alone, put, get := &concurrent{what: "alone"}, &concurrent{what: "during a put"}, &concurrent{what: "during a get"}
	for range o.rounds {
		if err := calls(alone); err != nil {
			return nil, err
		}
		for _, b := range []*concurrent{put, get} {
			moving, over := context.WithCancel(ctx)
			ended := make(chan error, 1)
			began := make(chan struct{}, 1)
			go func() { ended <- transferUntil(moving, c, b == put, near, began) }()
			<-began
			err := calls(b)
			over()
			if err := errors.Join(err, <-ended); err != nil {
				return nil, err
			}
		}
	}
	return []*concurrent{alone, put, get}, nil
}

// transferUntil repeats a transfer until the context ends.
func transferUntil(ctx context.Context, c *anser.Client, put bool, near string, began chan<- struct{}) error {
	for {
		select {
		case began <- struct{}{}:
		default:
		}
		var err error
		if put {
			_, err = filetransfer.Put(ctx, c, filepath.Join(near, "source"), "beside")
		} else {
			_, err = filetransfer.GetTo(ctx, c, "remote", io.Discard)
		}
		if ctx.Err() != nil {
			return nil //nits:ignore nilerr the time is over
		}
		if err != nil {
			return err
		}
	}
}

func median(all []float64) float64 { return at(all, 0.5) }

// at returns the value below which the share of all lies.
func at(all []float64, share float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[min(int(share*float64(len(s))), len(s)-1)]
}

// ratio returns the median of the rounds' ratios, the least and the most.
func ratio(own, base []float64) string {
	var all []float64
	for i := range own {
		all = append(all, own[i]/base[i])
	}
	return fmt.Sprintf("%.2f (%.2f – %.2f)", median(all), slices.Min(all), slices.Max(all))
}

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
