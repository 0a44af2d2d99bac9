package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	rpcx "github.com/smallnest/rpcx/client"
	"github.com/smallnest/rpcx/log"
	"github.com/smallnest/rpcx/protocol"
	rpcxserver "github.com/smallnest/rpcx/server"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// rpcx, in settings that suit the rows. What is idempotent fails over, nine times at most, since
// the server that is gone may be the next again. What is not fails at once: it offers no retry of
// just what was not sent. Heartbeats find what is dead. Where packets vanish, a server that could
// not be reached is left alone for a moment, since all calls of a client wait while it connects to
// one; elsewhere that would only make more calls fail. Messages have a bound, as gRPC's have by
// default: a length that was damaged would be allocated.
const (
	rpcxRetries  = 9
	rpcxPause    = 10 * time.Millisecond // between them
	rpcxPing     = 2 * time.Second
	rpcxAnswer   = time.Second
	rpcxConnect  = 300 * time.Millisecond
	rpcxAlone    = 2 * time.Second // after two failures
	rpcxMaxBytes = 4 << 20
)

func setUpRPCX() {
	log.SetDummyLogger() // it would write to the standard output, which is the parent's
	protocol.MaxMessageLength = rpcxMaxBytes
}

// Entry is what rpcx sends as JSON: it takes no type whose name is not exported.
type Entry entry

// rpcxLedger has the methods of a server of rpcx.
type rpcxLedger struct{ server *server }

// Append is not idempotent.
func (l rpcxLedger) Append(ctx context.Context, in, out *Entry) error {
	return rpcxReply(out)(l.server.record(ctx, (*entry)(in)))
}

// Set is idempotent.
func (l rpcxLedger) Set(ctx context.Context, in, out *Entry) error {
	return rpcxReply(out)(l.server.record(ctx, (*entry)(in)))
}

// Hold runs until the call is cancelled, which rpcx does not report.
func (l rpcxLedger) Hold(ctx context.Context, in, out *Entry) error {
	return rpcxReply(out)(l.server.hold(ctx, (*entry)(in)))
}

func rpcxReply(out *Entry) func(*entry, error) error {
	return func(reply *entry, err error) error {
		if err == nil {
			*out = Entry(*reply)
		}
		return err
	}
}

// runRPCXServer is the role of a server of rpcx.
func runRPCXServer(c config, p *parent) error {
	setUpRPCX()
	s, err := newServer(c)
	if err != nil {
		return err
	}
	defer s.book.Close()
	x := rpcxserver.NewServer()
	x.DisableHTTPGateway, x.DisableJSONRPC = true, true
	s.conns = func() int { return len(x.ActiveClientConn()) }
	if err := x.RegisterName("Ledger", rpcxLedger{s}, ""); err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	if c.TLS != nil {
		secure, _, err := peerTLS("rpcx", c.TLS)
		if err != nil {
			return err
		}
		l = tls.NewListener(l, secure)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	drained := make(chan error, 1)
	defer context.AfterFunc(ctx, func() { drained <- x.Shutdown(context.Background()) })()
	if err := s.answerPeer(p); err != nil {
		return err
	}
	if err := x.ServeListener("tcp", l); ctx.Err() == nil {
		return err
	}
	return <-drained
}

// rpcxCaller calls servers of rpcx.
type rpcxCaller struct {
	plain, idempotent rpcx.XClient
	conns             []*rpcx.Client // for calls that stay open, to the first server
	timeout           time.Duration
}

// rpcxAttempts counts those of a client.
type rpcxAttempts struct{ attempts *atomic.Int64 }

// It is given to rpcx as any.
var _ rpcx.PreCallPlugin = rpcxAttempts{}

// PreCall implements client.PreCallPlugin.
func (a rpcxAttempts) PreCall(context.Context, string, string, any) error {
	a.attempts.Add(1)
	return nil
}

func newRPCXCaller(c config, attempts *atomic.Int64) (*rpcxCaller, error) {
	o := rpcx.DefaultOption
	o.SerializeType = protocol.JSON
	o.Retries, o.RetryInterval = rpcxRetries, rpcxPause
	o.Heartbeat, o.HeartbeatInterval, o.MaxWaitForHeartbeat = true, rpcxPing, rpcxAnswer
	o.ConnectTimeout = rpcxConnect
	if c.Short { // the result is not used, and a busy machine is slow
		o.ConnectTimeout = c.Timeout
	}
	if c.Keepalive[0] > 0 { // packets vanish
		o.GenBreaker = func() rpcx.Breaker { return rpcx.NewConsecCircuitBreaker(2, rpcxAlone) }
	}
	if c.TLS != nil {
		_, secure, err := peerTLS("rpcx", c.TLS)
		if err != nil {
			return nil, err
		}
		o.TLSConfig = secure
	}
	addresses := strings.Split(c.Target, ",")
	var servers []*rpcx.KVPair
	for _, address := range addresses {
		servers = append(servers, &rpcx.KVPair{Key: "tcp@" + address})
	}
	discovery, err := rpcx.NewMultipleServersDiscovery(servers)
	if err != nil {
		return nil, err
	}
	plugins := rpcx.NewPluginContainer()
	plugins.Add(rpcxAttempts{attempts})
	x := &rpcxCaller{timeout: c.Timeout}
	x.plain = rpcx.NewXClient("Ledger", rpcx.Failfast, rpcx.RoundRobin, discovery, o)
	x.idempotent = rpcx.NewXClient("Ledger", rpcx.Failover, rpcx.RoundRobin, discovery, o)
	x.plain.SetPlugins(plugins)
	x.idempotent.SetPlugins(plugins)
	o.Heartbeat = false // a connection that is slow to answer among thousands of calls is not dead
	for range c.Conns {
		conn := rpcx.NewClient(o)
		if err := conn.Connect("tcp", addresses[0]); err != nil {
			return nil, errors.Join(err, x.close())
		}
		x.conns = append(x.conns, conn)
	}
	return x, nil
}

func (x *rpcxCaller) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	client, method := x.plain, "Append"
	if idempotent {
		client, method = x.idempotent, "Set"
	}
	out := new(Entry)
	err := client.Call(ctx, method, (*Entry)(in), out)
	return (*entry)(out), err
}

// outcome knows what can be told from rpcx's errors. That of a connection which could not be made,
// that of a server which is left alone because of it, and that there is no server are returned
// only where nothing was sent, in the last attempt and in those before. ErrShutdown is not among
// them: a call that was sent ends with it too. An error of the service may be one that kept the
// handler from running, and is only text.
func (x *rpcxCaller) outcome(err error) (ledger.Outcome, anser.Code) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return ledger.NotSent, anser.Unavailable
	}
	switch {
	case errors.Is(err, rpcx.ErrBreakerOpen), errors.Is(err, rpcx.ErrXClientNoServer), errors.Is(err, rpcx.ErrServerUnavailable):
		return ledger.NotSent, anser.Unavailable
	case errors.Is(err, context.DeadlineExceeded):
		return ledger.Unknown, anser.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return ledger.Unknown, anser.Canceled
	}
	if _, ok := errors.AsType[rpcx.ServiceError](err); ok {
		return ledger.Unknown, anser.Unknown
	}
	return ledger.Unknown, anser.Unavailable
}

// hold makes blocking calls: other calls cannot be cancelled.
func (x *rpcxCaller) hold(ctx context.Context, n int) (wait func() error) {
	return holdEach(n, func(i int, in *entry) error {
		if len(x.conns) == 0 {
			return errors.New("no connections for calls that stay open")
		}
		err := x.conns[i%len(x.conns)].Call(ctx, "Ledger", "Hold", (*Entry)(in), new(Entry))
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return fmt.Errorf("not cancelled: %w", err)
	})
}

// close closes the connections. For rpcx it is an error if one has ended already, here it is not.
func (x *rpcxCaller) close() error {
	x.plain.Close()
	x.idempotent.Close()
	for _, conn := range x.conns {
		conn.Close()
	}
	return nil
}

// runRPCXClient is the role of a client of rpcx.
func runRPCXClient(c config, p *parent) error {
	setUpRPCX()
	s := new(client)
	x, err := newRPCXCaller(c, &s.attempts)
	if err != nil {
		return err
	}
	s.caller = x
	if err := p.ready(); err != nil {
		return err
	}
	if err := p.obey(s.do); err != nil {
		return err
	}
	return x.close()
}

// introduceRPCX sends one heartbeat, as clients do periodically: before the first byte of a
// client, a server does not recognize it.
func introduceRPCX(nc net.Conn) error {
	m := protocol.NewMessage()
	m.SetMessageType(protocol.Request)
	m.SetHeartbeat(true)
	m.SetSerializeType(protocol.MsgPack)
	if _, err := m.WriteTo(nc); err != nil {
		return err
	}
	reply := protocol.NewMessage()
	if err := reply.Decode(nc); err != nil {
		return err
	}
	if !reply.IsHeartbeat() || reply.MessageType() != protocol.Response {
		return errors.New("the server answered a heartbeat with something else")
	}
	return nil
}
