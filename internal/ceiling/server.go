//go:build unix

package main

import (
	"encoding/binary"
	"io"
	"log"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/benchpb"
)

// listen runs serve for each connection until the process ends.
func listen(o options, w io.Writer, serve func(net.Conn)) {
	if o.network == "unix" {
		if err := os.Remove(o.addr); err != nil && !os.IsNotExist(err) {
			log.Fatal(err)
		}
	}
	l, err := net.Listen(o.network, o.addr)
	if err != nil {
		log.Fatal(err)
	}
	report(w, map[string]any{"addr": l.Addr().String()})
	var active atomic.Int32
	var start time.Duration
	for {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		if active.Add(1) == 1 {
			start = cpuTime()
		}
		go func() {
			defer c.Close()
			serve(c)
			if active.Add(-1) == 0 {
				report(w, map[string]any{"server_cpu_s": (cpuTime() - start).Seconds()})
			}
		}()
	}
}

// answer decodes, answers and encodes on the reader goroutine, and writes when there is no more
// input.
func answer(c net.Conn, k codec) {
	out := make([]byte, 0, 128<<10)
	readFrames(c, func(header, body []byte) {
		m := k.parse(body)
		benchpb.Answer(m)
		start := len(out)
		out = append(out, header...)
		out = k.append(out, m)
		binary.LittleEndian.PutUint32(out[start:], uint32(len(out)-start-headerSize))
	}, func() error {
		if len(out) == 0 {
			return nil
		}
		_, err := c.Write(out)
		out = out[:0]
		return err
	})
}
