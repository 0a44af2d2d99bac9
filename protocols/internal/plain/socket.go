package plain

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// The WebSocket subprotocols.
const (
	socketProtocol = "anser.json"
	bearerProtocol = "anser.bearer." // with a token in base64url: a page cannot set the header
)

const (
	messageTime = 30 * time.Second // for the rest of a message that has begun
	stopTime    = time.Second      // for a Send that the call's end interrupts
	pongTime    = 20 * time.Second
	// closeError and a code is the status that closes a stream with an error.
	closeError = 4000
)

// socket carries a stream over a WebSocket: a message of either side is a text message with JSON,
// and an empty one ends those of the client.
type socket struct {
	*request
	ws     *websocket.Conn
	nc     net.Conn // below ws
	host   *host.Conn
	in     *inbox
	cancel context.CancelFunc // of the call

	heard   atomic.Bool // something has arrived since the last look
	paused  atomic.Bool // nothing is read, as the handler does not receive
	sending atomic.Bool
	stopped atomic.Bool // no further message is sent

	mu      sync.Mutex // guards the fields below
	broken  *breach    // what the client did wrong
	over    bool       // the handler of the request returns
	leaving sync.WaitGroup
}

// breach is a fault of the client that ends the socket.
type breach struct {
	status websocket.StatusCode
	fault  *anser.Error
}

// socket serves a stream over a WebSocket.
func (q *request) socket() {
	if !q.method.Stream {
		q.fail(anser.Refuse(anser.InvalidArgument, "the method is not a stream: call it without a WebSocket"), nil)
		return
	}
	if q.route != nil && (q.route.RawRequest() || q.route.RawReply()) {
		q.fail(anser.Refuse(anser.InvalidArgument, "the messages are bytes (google.api.HttpBody): call the method without a WebSocket"), nil)
		return
	}
	protocols, token, fault := subprotocols(q.r.Header.Values("Sec-WebSocket-Protocol"))
	if fault == nil && token != "" && q.r.Header.Get("Authorization") != "" {
		fault = anser.Refuse(anser.InvalidArgument, "the request has two credentials: leave out the header Authorization or the subprotocol")
	}
	if fault == nil {
		fault = q.prepareSocket()
	}
	if fault != nil {
		q.fail(fault, nil)
		return
	}
	if token != "" {
		token = "Bearer " + token
	} else {
		token = q.r.Header.Get("Authorization")
	}
	ws, nc, err := q.accept(protocols)
	if err != nil {
		return // it has answered
	}
	s := &socket{request: q, ws: ws, nc: nc, host: host.FromContext(q.r.Context())}
	s.serve(token)
}

// prepareSocket reads the headers and the query, in which a page says what it cannot say in
// headers. The query of a route has fields of each message.
func (q *request) prepareSocket() *anser.Error {
	if fault := q.prepare(); fault != nil || q.route != nil {
		return fault
	}
	query, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return anser.Refuse(anser.InvalidArgument, "the query: %v", err)
	}
	for name, values := range query {
		if name != "timeout" || len(values) > 1 {
			return anser.Refuse(anser.InvalidArgument, "the query has the parameter %q: only one timeout is known", name)
		}
		if fault := exchange.SetTimeout(&q.call, "timeout", values[0]); fault != nil {
			return fault
		}
	}
	return nil
}

// subprotocols returns what the server answers to the subprotocols of a client, and the token in
// them.
func subprotocols(values []string) (answer []string, token string, fault *anser.Error) {
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			name = strings.TrimSpace(name)
			text, is := strings.CutPrefix(name, bearerProtocol)
			switch {
			case name == socketProtocol:
				answer = []string{socketProtocol}
			case is && token != "":
				return nil, "", anser.Refuse(anser.InvalidArgument, "the subprotocols have two tokens")
			case is:
				b, err := base64.RawURLEncoding.DecodeString(text)
				if err != nil || len(b) == 0 {
					return nil, "", anser.Refuse(anser.InvalidArgument, "the token in the subprotocol is not in base64url without padding")
				}
				token = string(b)
			}
		}
	}
	if len(values) > 0 && answer == nil {
		return nil, "", anser.Refuse(anser.InvalidArgument, "none of the subprotocols is served: offer %s", socketProtocol)
	}
	return answer, token, nil
}

// serve runs the call, and closes the socket when that has ended.
func (s *socket) serve(authorization string) {
	ctx, cancel := context.WithCancel(s.r.Context())
	s.in, s.cancel = newInbox(s.host), cancel
	s.ws.SetReadLimit(-1) // message has the limit, so that it can tell the client
	defer s.host.AddSocket(s.leave)()
	var running sync.WaitGroup
	running.Go(s.read)
	running.Go(func() { s.keepAlive(ctx) })
	s.end(ctx, s.call(ctx, authorization))
	cancel()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.nc.Close()
	s.in.stop(errOver)
	running.Wait()
	s.leaving.Wait()
}

// leave tells the client that the server goes away.
func (s *socket) leave() {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.leaving.Add(1)
	s.mu.Unlock()
	defer s.leaving.Done()
	s.close(websocket.StatusGoingAway, "the server goes away")
}

var errOver = errors.New("the stream is over")

// call makes the server run the method.
func (s *socket) call(ctx context.Context, authorization string) *anser.Error {
	pc, fault := s.host.Login(authorization)
	if fault != nil {
		return fault
	}
	_, fault = exchange.Stream(ctx, pc, &s.request.call, s, nil)
	return fault
}

// read reads the socket until its end, so that this is noticed although the handler does not
// receive.
func (s *socket) read() {
	defer s.cancel()
	var ended, said bool // there are no more messages, and the client has said so
	if s.route != nil && !s.route.TakesBody() {
		ended = true // the address is the message
		s.in.put(inMessage{})
		s.in.close(io.EOF)
	}
	for {
		data, held, err := s.message()
		if err != nil {
			s.in.close(err)
			return
		}
		switch {
		case len(data) == 0 && !said:
			ended, said = true, true
			s.in.close(io.EOF)
			continue
		case ended:
			s.host.Release(held)
			s.breach(websocket.StatusPolicyViolation, anser.Refuse(anser.InvalidArgument, "a message follows the last one of the client"))
			return
		case !s.method.ClientStream:
			ended = true
		}
		room := s.in.put(inMessage{data, held})
		if ended {
			s.in.close(io.EOF)
		}
		if !room {
			s.paused.Store(true)
			s.in.await()
			s.paused.Store(false)
			s.heard.Store(true)
		}
	}
}

// message reads the next message.
func (s *socket) message() (data []byte, held int, err error) {
	kind, r, err := s.ws.Reader(context.Background())
	if err != nil {
		return nil, 0, err
	}
	s.heard.Store(true)
	s.nc.SetReadDeadline(time.Now().Add(messageTime))
	defer s.nc.SetReadDeadline(time.Time{})
	if kind != websocket.MessageText {
		return nil, 0, s.breach(websocket.StatusUnsupportedData, anser.Refuse(anser.InvalidArgument, "a message is binary: send JSON as text"))
	}
	var failed error
	data, held, fault := exchange.ReadMessage(readerFunc(func(p []byte) (n int, err error) {
		n, err = r.Read(p)
		if err != io.EOF {
			failed = err
		}
		return n, err
	}), s.host, s.handler.most)
	switch {
	case failed != nil:
		return nil, 0, failed
	case fault != nil:
		return nil, 0, s.breach(websocket.StatusMessageTooBig, fault)
	case !utf8.Valid(data):
		s.host.Release(held)
		return nil, 0, s.breach(websocket.StatusInvalidFramePayloadData, anser.Refuse(anser.InvalidArgument, "a message is not UTF-8"))
	}
	return data, held, nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// breach notes what the client did wrong, and returns it as the end of its messages.
func (s *socket) breach(status websocket.StatusCode, fault *anser.Error) error {
	s.mu.Lock()
	s.broken = &breach{status, fault}
	s.mu.Unlock()
	return fault
}

// keepAlive ends the socket of a client that does not answer. One that reads or writes is there.
func (s *socket) keepAlive(ctx context.Context) {
	tick := time.NewTicker(s.handler.PingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.heard.Swap(false) || s.paused.Load() || s.sending.Load() {
			continue
		}
		pong, cancel := context.WithTimeout(ctx, min(s.handler.PingEvery, pongTime))
		err := s.ws.Ping(pong)
		cancel()
		if err != nil && !s.heard.Load() && !s.paused.Load() && !s.sending.Load() {
			s.nc.Close()
			return
		}
	}
}

// pings bounds the pings of a client, each of which causes an answer: 100 at once, 10 a second.
func pings() func(context.Context, []byte) bool {
	const burst, rate = 100, 10
	level, last := 0.0, time.Now()
	return func(context.Context, []byte) bool {
		now := time.Now()
		level = max(0, level-rate*now.Sub(last).Seconds()) + 1
		last = now
		return level <= burst
	}
}

// Recv returns the next message of the client.
func (s *socket) Recv(msg any) error {
	m, err := s.in.take()
	if err != nil {
		return err
	}
	fault := s.decode(m.data, msg)
	s.host.Release(m.held)
	return asError(fault)
}

// Send sends a message.
func (s *socket) Send(msg any) error {
	data, _, fault := s.encode(msg)
	if fault != nil {
		return fault
	}
	s.sending.Store(true)
	defer s.sending.Store(false)
	if s.stopped.Load() {
		return errOver
	}
	return s.ws.Write(context.Background(), websocket.MessageText, data)
}

// Stop makes both return; see [anser.ProtocolStream]. A message that is being written has a moment,
// so that the client can read the end.
func (s *socket) Stop(why *anser.Error) {
	s.in.stop(why)
	s.stopped.Store(true)
	if s.sending.Load() {
		time.AfterFunc(stopTime, func() {
			if s.sending.Load() {
				s.nc.Close()
			}
		})
	}
}

// end tells the client how the call has ended: an error is the last message, and its code and
// outcome are in the status and the reason.
func (s *socket) end(ctx context.Context, fault *anser.Error) {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken != nil {
		fault = broken.fault
	}
	if fault == nil {
		s.close(websocket.StatusNormalClosure, "")
		return
	}
	status := closeError + websocket.StatusCode(fault.Code)
	switch {
	case broken != nil:
		status = broken.status
	case ctx.Err() != nil:
		s.nc.Close() // the client is gone
		return
	case fault.Code == anser.Unavailable && isClosed(s.host.Draining()):
		status = websocket.StatusGoingAway
	}
	data, _ := json.Marshal(map[string]any{"error": exchange.ProblemOf(exchange.HTTPStatusOf(fault), fault)})
	late := time.AfterFunc(endTime, func() { s.nc.Close() })
	defer late.Stop()
	s.ws.Write(context.Background(), websocket.MessageText, data)
	s.close(status, fault.Outcome.String()+": "+fault.Message)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// maxReason is the size of a reason in bytes.
const maxReason = 123

// close sends the status, and waits a moment for that of the client.
func (s *socket) close(status websocket.StatusCode, reason string) {
	if reason = strings.ToValidUTF8(reason, "�"); len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason-len("…")], "") + "…"
	}
	// While it waits, package websocket discards what the client sends, however slowly.
	late := time.AfterFunc(endTime, func() { s.nc.Close() })
	defer late.Stop()
	s.ws.Close(status, reason)
}
