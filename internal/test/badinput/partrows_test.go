package badinput_test

import (
	"slices"

	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// partRows are about large frames in PARTs.
func partRows() []row {
	const size = 200_000
	part := func(id uint64, size int) []byte {
		return append(wire.AppendPartHead(nil, id, uint32(size)), make([]byte, size)...)
	}
	request := func(id uint64) []byte {
		return wirepeer.Parts(wirepeer.Request(id, badBytes, make([]byte, size)), wire.MinFirstPart)[0]
	}
	reply := func(id uint64) []byte {
		return wirepeer.Parts(wirepeer.Reply(id, make([]byte, size)), wire.MinFirstPart)[0]
	}
	// after is a row with what follows the first PART of a frame.
	after := func(name string, then func(id uint64) []byte, r wire.Reason, how manner) row {
		return row{
			number: 189, name: name, toServer: toServer{send: append(request(1), then(1)...), want: ends(r), manner: how},
			toClient: toClient{reply: func(id uint64) []byte { return append(reply(id), then(id)...) }, how: how, why: r},
		}
	}
	return []row{
		both(189, "a PART of no frame", part(1, 100), wire.BadFrame),
		both(189, "a PART of length 0, of no frame", part(1, 0), wire.BadFrame),
		both(189, "a first PART that is too long", frame(1<<20, wire.TypePart, 0, 1, make([]byte, 40_000)...), wire.BadFrame),
		both(189, "a PART of PARTs", wirepeer.Parts(part(1, size), wire.MinFirstPart)[0], wire.BadFrame),
		both(189, "a stream in PARTs", wirepeer.Parts(
			wire.AppendRequest(nil, 1, wire.FlagStream, &wire.Request{Method: goodHold, Codec: 1, Priority: 2, Payload: make([]byte, size)}), wire.MinFirstPart)[0], wire.BadFrame),
		after("a tiny PART", func(id uint64) []byte { return part(id, 1) }, wire.BadFrame, manner{}),
		after("a PART beyond the end", func(id uint64) []byte { return frame(size+1, wire.TypePart, 0, id, make([]byte, 100)...) }, wire.BadFrame, manner{}),
		after("a PART of another frame", func(id uint64) []byte { return part(id+1, 2000) }, wire.BadID, manner{}),
		after("a frame in PARTs that does not go on", func(uint64) []byte { return nil }, wire.Timeout, manner{stall: true}),
		after("part of a PART", func(id uint64) []byte { return part(id, 150_000)[:100_000] }, wire.Timeout, manner{stall: true, late: true}),
		{
			number: 190, name: "a frame in PARTs that ends early", toServer: toServer{send: slices.Concat(request(1), part(1, 2000), part(1, 0), wire.AppendCancel(nil, 1)), want: want{kind: works}},
			toClient: toClient{reply: func(id uint64) []byte { return slices.Concat(reply(id), part(id, 2000), part(id, 0)) }, why: wire.BadFrame},
			note:     "a client has not cancelled the call, which would have no answer",
		},
	}
}
