//go:build unix

package main

import (
	"io"
	"log"
	"net"
	"time"

	"github.com/anser-rpc/anser/internal/benchpb"
)

// frameBytes is the size of the workload's request with its header.
const frameBytes = headerSize + 581

// echo sends back every frameBytes that it reads.
func echo(c net.Conn) {
	buf := make([]byte, frameBytes)
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// pingPong sends the bytes of a request and waits for the same number of bytes, o.calls times in
// sequence.
func pingPong(o options) map[string]any {
	c, err := net.Dial(o.network, o.addr)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ping := codec{}.append(make([]byte, headerSize), benchpb.Filled())
	pong := make([]byte, len(ping))
	all := make([]time.Duration, 0, o.calls)
	cpu := cpuTime()
	for range o.calls {
		t := time.Now()
		if _, err := c.Write(ping); err != nil {
			log.Fatal(err)
		}
		if _, err := io.ReadFull(c, pong); err != nil {
			log.Fatal(err)
		}
		all = append(all, time.Since(t))
	}
	figures := map[string]any{
		"pingpong": true, "c": 1, "conns": 1, "bytes": len(ping), "calls": len(all),
		"client_cpu_us_per_call": (cpuTime() - cpu).Seconds() * 1e6 / float64(len(all)),
	}
	percentiles(figures, all)
	return figures
}
