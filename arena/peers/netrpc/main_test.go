package main

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"net"
	"net/rpc"
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestGobMessageConverts(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(plain(m)); err != nil {
			return nil, err
		}
		var out Plain
		if err := gob.NewDecoder(&b).Decode(&out); err != nil {
			return nil, err
		}
		return out.message().MarshalVT()
	})
}

// What the codec writes ends with the message.
func TestProtobufBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		here, there := net.Pipe()
		go func() {
			_ = newClientCodec(here).WriteRequest(&rpc.Request{ServiceMethod: "Hello.Say"}, m) // seen by the reader
			here.Close()
		}()
		var b bytes.Buffer
		_, err := b.ReadFrom(there)
		return b.Bytes()[headerSize+len("Hello.Say"):], err
	})
}

// No bytes of a peer make the codec fail otherwise than with an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03Add\x08\x01"))
	f.Add([]byte("\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := framer{in: bufio.NewReaderSize(bytes.NewReader(b), bufferSize), names: make(map[string]string)}
		for {
			if _, _, err := r.header(); err != nil {
				return
			}
			if err := r.read(new(workload.AddRequest)); err != nil {
				return
			}
		}
	})
}

func TestGobCalls(t *testing.T) { peertest.Calls(t, newProgram()) }

func TestProtobufCalls(t *testing.T) {
	peertest.Calls(t, &workload.Program{Serve: protobufMode.listen, Open: workload.Open(protobufMode.dial)})
}
