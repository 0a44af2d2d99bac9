//go:build unix

// Ceiling measures the minimum cost of an RPC on a machine: framing, batched writes and the codec,
// nothing else. It has no deadlines, errors, limits or interceptors. It is the denominator of the
// performance targets, and must run together with the program it is compared with.
//
//	ceiling -serve -addr 127.0.0.1:7711 &
//	ceiling -addr 127.0.0.1:7711 -c 1000 -n 600000
//
// With -pingpong on both sides it does even less: one caller and one connection exchange the same
// bytes without a codec, which is the minimum of a round trip.
//
// The server prints its address when it listens, and its CPU time when its last connection closes;
// the client prints its figures. All of these are JSON objects, one per line.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	network string
	addr    string
	callers int
	calls   int
	conns   int
	codec   codec
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("ceiling: ")
	var o options
	serve := flag.Bool("serve", false, "run the server")
	pingpong := flag.Bool("pingpong", false, "exchange bare bytes, one caller")
	name := flag.String("codec", "vt", "vt or std")
	flag.StringVar(&o.network, "net", "tcp", "tcp or unix")
	flag.StringVar(&o.addr, "addr", "127.0.0.1:7711", "address")
	flag.IntVar(&o.callers, "c", 100, "concurrent callers")
	flag.IntVar(&o.calls, "n", 600000, "calls, shared by the callers")
	flag.IntVar(&o.conns, "conns", 2, "shared connections")
	flag.Parse()
	switch *name {
	case "vt":
	case "std":
		o.codec.std = true
	default:
		log.Fatalf("codec %q: use vt or std", *name)
	}
	if o.callers < 1 || o.conns < 1 || o.calls < o.callers {
		log.Fatal("-c and -conns must be positive, and -n at least -c")
	}
	switch {
	case *serve && *pingpong:
		listen(o, os.Stdout, echo)
	case *serve:
		listen(o, os.Stdout, func(c net.Conn) { answer(c, o.codec) })
	case *pingpong:
		report(os.Stdout, pingPong(o))
	default:
		report(os.Stdout, load(o))
	}
}

func report(w io.Writer, figures map[string]any) {
	if err := json.NewEncoder(w).Encode(figures); err != nil {
		log.Fatal(err)
	}
}

// percentiles adds the percentiles of all, which it sorts, to figures.
func percentiles(figures map[string]any, all []time.Duration) {
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))].Nanoseconds()) / 1e3 }
	figures["p50_us"], figures["p99_us"], figures["p999_us"], figures["max_us"] = at(.5), at(.99), at(.999), at(1)
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		log.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
