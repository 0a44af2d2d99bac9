package main

import (
	"bytes"
	"context"
	"math/rand/v2"

	"github.com/anser-rpc/anser"
)

// bulk is an entry that is heavy.
type bulk struct {
	Entry entry
	Body  []byte
}

// The methods of a server that takes it.
const (
	appendBulk anser.Method[bulk, bulk] = "Ledger.AppendBulk" // not idempotent
	setBulk    anser.Method[bulk, bulk] = "Ledger.SetBulk"    // idempotent
)

// recordBulk is record. The reply is as heavy as the request.
func (s *server) recordBulk(ctx context.Context, in *bulk) (*bulk, error) {
	if _, err := s.record(ctx, &in.Entry); err != nil {
		return nil, err
	}
	return in, nil
}

// bulkCaller makes heavy calls.
type bulkCaller struct {
	anserCaller
	noise []byte // as long as a body and 256 bytes more
	bytes int
}

func newBulkCaller(c *anser.Client, bytes int) *bulkCaller {
	noise := make([]byte, bytes+256)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	return &bulkCaller{anserCaller{client: c}, noise, bytes}
}

// call sends a body that nearly no other call has, and that need not be made for it.
func (b *bulkCaller) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	from := int(in.ID[len(in.ID)-1])
	req := &bulk{*in, b.noise[from : from+b.bytes]}
	method := appendBulk
	if idempotent {
		method = setBulk
	}
	out, err := method.Call(ctx, b.client, req)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(out.Body, req.Body) {
		return new(entry), nil // is that to another call, or damaged
	}
	return &out.Entry, nil
}
