package wire_test

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

func TestDataRoundTrip(t *testing.T) {
	for _, flags := range []wire.Flags{0, wire.FlagMore} {
		for _, want := range []string{"", "payload"} {
			b := append(wire.AppendDataHead([]byte("kept"), 3, flags, 5, 4), want...)
			wire.PutLength(b[4:], uint32(len(b)-4-wire.HeaderSize))
			codec, compression, payload, err := wire.ParseData(body(t, b[4:], wire.TypeData, flags, 3))
			if err != nil || codec != 5 || compression != 4 || string(payload) != want {
				t.Fatalf("parsed %d %d %q, %v; want %q", codec, compression, payload, err, want)
			}
		}
	}
}

func TestDataTruncated(t *testing.T) {
	for n := range wire.DataSize {
		_, _, _, err := wire.ParseData(make([]byte, n))
		wantReason(t, err, wire.BadFrame)
	}
}

func TestEndRoundTrip(t *testing.T) {
	metadata, err := wire.ParseEnd(0, body(t, wire.AppendEnd(nil, 3, nil), wire.TypeEnd, 0, 3))
	if err != nil || metadata != nil {
		t.Fatalf("parsed % X, %v", metadata, err)
	}
	b := wire.AppendEnd([]byte("kept"), 3, someMetadata)
	metadata, err = wire.ParseEnd(wire.FlagMetadata, body(t, b[4:], wire.TypeEnd, wire.FlagMetadata, 3))
	if err != nil || !bytes.Equal(metadata, someMetadata) {
		t.Fatalf("parsed % X, %v; want % X", metadata, err, someMetadata)
	}
}

func TestEndMalformed(t *testing.T) {
	for n := range len(someMetadata) {
		_, err := wire.ParseEnd(wire.FlagMetadata, someMetadata[:n])
		wantReason(t, err, wire.BadMetadata)
	}
	_, err := wire.ParseEnd(0, []byte{0})
	wantReason(t, err, wire.BadFrame)
	_, err = wire.ParseEnd(wire.FlagMetadata, append(someMetadata[:len(someMetadata):len(someMetadata)], 0))
	wantReason(t, err, wire.BadFrame)
}

func TestWindowRoundTrip(t *testing.T) {
	for _, id := range []uint64{0, 3, 1 << 63} {
		for _, want := range []uint32{1, 65_536, 1<<31 - 2, 1<<31 - 1} {
			got, err := wire.ParseWindow(id, body(t, wire.AppendWindow(nil, id, want), wire.TypeWindow, 0, id))
			if err != nil || got != want {
				t.Fatalf("parsed %d, %v; want %d", got, err, want)
			}
		}
	}
}

func TestWindowMalformed(t *testing.T) {
	credit := func(n uint32) []byte { return wire.AppendWindow(nil, 1, n)[wire.HeaderSize:] }
	for _, id := range []uint64{0, 1} {
		for _, n := range []uint32{1 << 31, 1<<32 - 1} {
			_, err := wire.ParseWindow(id, credit(n))
			wantReason(t, err, wire.FlowControl)
		}
		for _, n := range []int{0, 1, 2, 3, 5, 8} {
			_, err := wire.ParseWindow(id, make([]byte, n))
			wantReason(t, err, wire.BadFrame)
		}
	}
	_, err := wire.ParseWindow(0, credit(0))
	wantReason(t, err, wire.FlowControl)
	_, err = wire.ParseWindow(1, credit(0))
	wantCode(t, err, wire.InvalidArgument)
}
