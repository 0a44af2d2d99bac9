package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"

	"github.com/anser-rpc/anser/arena/workload"
)

// answer decodes, answers and encodes on the goroutine that reads, and writes when nothing is left
// to read, until the connection ends.
func answer(c net.Conn, o *workload.ServerOptions) {
	out := make([]byte, 0, 128<<10)
	err := readFrames(c, func(header, body []byte) error {
		start := len(out)
		out = append(out, header...)
		var err error
		switch method := binary.LittleEndian.Uint32(header[4:]); method {
		case methodSay:
			m := new(workload.BenchmarkMessage)
			if err = m.UnmarshalVT(body); err == nil {
				o.Answer(m)
				out, err = appendMessage(out, m)
			}
		case methodAdd:
			m := new(workload.AddRequest)
			if err = m.UnmarshalVT(body); err == nil {
				o.Delay()
				out, err = appendMessage(out, &workload.AddReply{X: m.A + m.B})
			}
		default:
			err = fmt.Errorf("method %d: there are %d and %d", method, methodSay, methodAdd)
		}
		binary.LittleEndian.PutUint32(out[start:], uint32(len(out)-start-headerSize))
		return err
	}, func() error {
		if len(out) == 0 {
			return nil
		}
		_, err := c.Write(out)
		out = out[:0]
		return err
	})
	if ended(err) {
		return
	}
	fmt.Fprintf(os.Stderr, "ceiling: close the connection of %v: %v\n", c.RemoteAddr(), err)
}
