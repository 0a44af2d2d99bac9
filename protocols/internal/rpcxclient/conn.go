// Package rpcxclient lets an Anser client call rpcx servers. The connection that New returns
// takes and returns Anser's frames. Two goroutines translate: frames.go takes the client's frames,
// replies.go the server's messages.
package rpcxclient

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/link"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
	"github.com/anser-rpc/anser/wire"
)

const (
	maxCalls   = 10_000
	readBuffer = 16 << 10
	stall      = 10 * time.Second // in which a message of the server makes progress
	farewell   = time.Second      // in which a client leaves a connection whose server has gone
	maxPing    = 64               // bytes of the answer to a heartbeat
)

// conn is the connection as the client sees it.
type conn struct {
	net.Conn // the client's end of a pipe
	server   net.Conn
}

func (c *conn) LocalAddr() net.Addr  { return c.server.LocalAddr() }
func (c *conn) RemoteAddr() net.Addr { return c.server.RemoteAddr() }

type tlsConn interface {
	ConnectionState() tls.ConnectionState
}

// secured is a connection with TLS.
type secured struct {
	*conn
	tlsConn
}

// translator is between the client and the server.
type translator struct {
	server  *link.Conn
	client  *link.Conn // the other end of the pipe
	replies *rpcxwire.Reader

	// Owned by the goroutine that reads the client's frames.
	methods []method // by their number

	mu       sync.Mutex    // guards the fields below
	settings wire.Settings // of the client
	shaken   bool
	token    string
	calls    map[uint64]*call
	sweepAt  int    // number of calls at which calls that the client has given up are looked for
	ping     uint64 // value of the client's PING that the server has not answered
	pinging  bool
	lost     bool // the server has gone
	left     bool // the client makes no further calls here
	bye      bool // the client was told that the connection has ended
}

// method is what the client calls by a number.
type method struct{ path, name string }

// call is a call that the server has not answered.
type call struct {
	codec    uint8
	gzip     bool
	deadline mono.Time // 0: none
	before   int64     // bytes for the server before those of the call, or unknown; guarded by the lock of the translator
}

// unknown is the place of a call that is being appended: it may leave at once.
const unknown = -1

// New returns the connection, after a heartbeat that the server has answered: a server that accepts
// connections and does not serve them gets no call. A deadline of nc bounds it.
func New(nc net.Conn, _ string) (net.Conn, error) {
	t := &translator{server: link.New(nc, nil), calls: make(map[uint64]*call), sweepAt: leastSweep}
	t.replies = rpcxwire.NewReader(t.server, nil)
	if err := t.greet(nc); err != nil {
		return nil, err
	}
	nc.SetDeadline(time.Time{}) // from here on the client sets deadlines of the pipe
	t.server.SetLimits(link.Limits{Stall: stall})
	near, far := net.Pipe()
	t.client = link.New(far, nil)
	t.client.SetLimits(link.Limits{})
	go t.run(far)
	c := &conn{near, nc}
	if tc, ok := nc.(tlsConn); ok {
		return &secured{c, tc}, nil
	}
	return c, nil
}

// greet sends a heartbeat and waits for the answer.
func (t *translator) greet(nc net.Conn) error {
	if _, err := nc.Write(appendHeartbeat(nil, 0)); err != nil {
		return err
	}
	h, f, err := t.replies.Next()
	if err != nil {
		return fmt.Errorf("is it an rpcx server? it has not answered a heartbeat: %w", err)
	}
	if !h.Has(rpcxwire.Heartbeat) || f.Payload > maxPing {
		return errors.New("the rpcx server has answered a heartbeat with something else")
	}
	return t.replies.Skip(&f)
}

// appendHeartbeat appends a heartbeat with a number.
func appendHeartbeat(b []byte, value uint64) []byte {
	payload := binary.BigEndian.AppendUint64([]byte{0xcf}, value) // a MessagePack number, as rpcx sends it
	return rpcxwire.Append(b, rpcxwire.Head{Flags: rpcxwire.Heartbeat, Serialization: rpcxwire.MessagePack, Seq: beats}, "", "", nil, payload)
}

// beats is the sequence number of heartbeats, which no call has.
const beats = 1 << 63

// run translates until the client closes the connection.
func (t *translator) run(far net.Conn) {
	var read sync.WaitGroup
	read.Go(t.receive)
	t.take(far)
	t.server.Close()
	t.client.Close()
	read.Wait()
}

// send appends a message for the server, and returns how many bytes were before it.
func (t *translator) send(message func([]byte) []byte) (before int64, err error) {
	n := 0
	end, err := t.server.Out.Append(nil, func(b *bytes.Buffer) error {
		out := message(b.AvailableBuffer())
		n = len(out)
		b.Write(out)
		return nil
	})
	return end - int64(n), err
}

// tell appends frames for the client.
func (t *translator) tell(frames func([]byte) []byte) {
	t.client.Out.Append(nil, func(b *bytes.Buffer) error {
		b.Write(frames(b.AvailableBuffer()))
		return nil
	})
}

// fail tells the client how a call has ended.
func (t *translator) fail(id uint64, e *wire.ErrorBody) {
	t.tell(func(b []byte) []byte { return wire.AppendError(b, id, 0, e) })
}

// refusal is the error of a call that did not run.
func refusal(code wire.Code, text string) *wire.ErrorBody {
	return &wire.ErrorBody{Code: code, Outcome: wire.Refused, Message: text}
}

// end ends the calls of a connection whose server has gone, and asks the client to leave it.
func (t *translator) end(why error) {
	t.server.Close()
	begun := t.server.Out.Begun()
	t.mu.Lock()
	calls := t.calls
	t.calls = make(map[uint64]*call)
	t.lost = true
	t.mu.Unlock()
	for id, c := range calls {
		e := &wire.ErrorBody{Code: wire.Unavailable, Outcome: wire.OutcomeUnknown, Message: fmt.Sprintf("the connection to the rpcx server was lost: %v", why)}
		if begun <= c.before {
			e.Outcome = wire.Refused
		}
		t.fail(id, e)
	}
	t.tell(func(b []byte) []byte { return wire.AppendDrain(b, 0, uint32(farewell/time.Millisecond)) })
	t.client.Out.FlushLater()
	time.AfterFunc(farewell, func() { t.client.Close() })
}
