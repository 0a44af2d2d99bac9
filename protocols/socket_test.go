package protocols_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http2"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/protocols"
)

// extended opens WebSockets over HTTP/2 (RFC 8441), for a client that knows them over HTTP/1.1.
type extended struct{ transport http.RoundTripper }

func (e extended) RoundTrip(r *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	// The stream outlives the handshake, whose context ends with it.
	q, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodConnect, r.URL.String(), out)
	if err != nil {
		return nil, err
	}
	q.Host = r.Host
	for name, values := range r.Header {
		switch name {
		case "Connection", "Upgrade", "Sec-Websocket-Key", "Sec-WebSocket-Key":
		default:
			q.Header[name] = values
		}
	}
	q.Header[":protocol"] = []string{"websocket"}
	resp, err := e.transport.RoundTrip(q)
	if err != nil || resp.StatusCode != 200 {
		in.Close()
		return resp, err
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	resp.StatusCode = http.StatusSwitchingProtocols
	resp.Header.Set("Connection", "Upgrade")
	resp.Header.Set("Upgrade", "websocket")
	resp.Header.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	resp.Body = &pipedBody{resp.Body, in}
	return resp, nil
}

type pipedBody struct {
	io.ReadCloser
	in *io.PipeWriter
}

func (b *pipedBody) Write(p []byte) (int, error) { return b.in.Write(p) }

func (b *pipedBody) Close() error {
	b.in.Close()
	return b.ReadCloser.Close()
}

// socketClients are those of WebSocket over both versions of HTTP.
func socketClients(t *testing.T) map[string]*http.Client {
	list := clients(t)
	//lint:ignore SA1019 net/http takes no header :protocol, which extended CONNECT has
	two := &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	//lint:ignore SA1019 as above
	t.Cleanup(two.CloseIdleConnections)
	list["HTTP/2"] = &http.Client{Transport: extended{two}}
	return list
}

type socketClient struct {
	*websocket.Conn
	t *testing.T
}

// openSocket opens a socket with headers, which are pairs.
func openSocket(t *testing.T, c *http.Client, address, path string, headers ...string) (*socketClient, *http.Response, error) {
	t.Helper()
	o := &websocket.DialOptions{HTTPClient: c, HTTPHeader: make(http.Header)}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Sec-WebSocket-Protocol" {
			o.Subprotocols = strings.Split(headers[i+1], ", ")
			continue
		}
		if headers[i] == "Host" {
			o.Host = headers[i+1]
			continue
		}
		o.HTTPHeader.Set(headers[i], headers[i+1])
	}
	ws, resp, err := websocket.Dial(t.Context(), "http://"+address+path, o)
	if err != nil {
		return nil, resp, err
	}
	t.Cleanup(func() { ws.CloseNow() })
	return &socketClient{ws, t}, resp, nil
}

func mustOpenSocket(t *testing.T, c *http.Client, address, path string, headers ...string) *socketClient {
	t.Helper()
	s, _, err := openSocket(t, c, address, path, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *socketClient) send(text string) {
	s.t.Helper()
	if err := s.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socketClient) want(text string) {
	s.t.Helper()
	kind, b, err := s.Read(s.t.Context())
	if err != nil || kind != websocket.MessageText || string(b) != text {
		s.t.Fatalf("%v %q, %v, want %q", kind, b, err, text)
	}
}

// ends reads messages until the end, and returns the last one.
func (s *socketClient) ends(status websocket.StatusCode, reason string) string {
	s.t.Helper()
	last := ""
	for {
		_, b, err := s.Read(s.t.Context())
		if err == nil {
			last = string(b)
			continue
		}
		var end websocket.CloseError
		if !errors.As(err, &end) || end.Code != status || !strings.Contains(end.Reason, reason) {
			s.t.Fatalf("the socket ends with %v, want %d %s", err, status, reason)
		}
		return last
	}
}

// streams serves methods of all kinds of streams.
func streams(s *anser.Server) {
	anser.StreamMethod[args, reply]("Chat.Echo").Handle(s, func(_ context.Context, st *anser.Stream[reply, args]) error {
		for {
			in, err := st.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if in.A < 0 {
				return anser.Errorf(anser.NotFound, "no %d", in.A)
			}
			if err := st.Send(&reply{in.A}); err != nil {
				return err
			}
		}
	})
	anser.ServerStreamMethod[args, reply]("Chat.Count").Handle(s, func(_ context.Context, in *args, out anser.Sender[reply]) error {
		for i := range in.A {
			if err := out.Send(&reply{i}); err != nil {
				return err
			}
		}
		return nil
	})
	anser.ClientStreamMethod[args, reply]("Chat.Sum").Handle(s, func(_ context.Context, in anser.Receiver[args]) (*reply, error) {
		out := new(reply)
		for m, err := range in.All() {
			if err != nil {
				return nil, err
			}
			out.C += m.A
		}
		return out, nil
	})
}

// Streams of all kinds run over WebSocket, in turns, and end as the page says.
func TestSockets(t *testing.T) {
	s, address := serve(t, anser.MaxMessage(1000))
	streams(s)
	for version, c := range socketClients(t) {
		t.Run(version, func(t *testing.T) {
			chat := mustOpenSocket(t, c, address, "/Chat.Echo")
			for i := range 3 {
				chat.send(fmt.Sprintf(`{"A":%d}`, i))
				chat.want(fmt.Sprintf(`{"C":%d}`, i))
			}
			chat.send("")
			chat.ends(websocket.StatusNormalClosure, "")

			count := mustOpenSocket(t, c, address, "/Chat.Count", "Sec-WebSocket-Protocol", "anser.json")
			if count.Subprotocol() != "anser.json" {
				t.Errorf("the subprotocol is %q", count.Subprotocol())
			}
			count.send(`{"A":2}`)
			count.want(`{"C":0}`)
			if last := count.ends(websocket.StatusNormalClosure, ""); last != `{"C":1}` {
				t.Error(last)
			}

			sum := mustOpenSocket(t, c, address, "/Chat.Sum")
			sum.send(`{"A":20}`)
			sum.send(`{"A":22}`)
			sum.send("")
			if last := sum.ends(websocket.StatusNormalClosure, ""); last != `{"C":42}` {
				t.Error(last)
			}
		})
	}
}

// What ends a socket otherwise is in the last message and in the status.
func TestSocketErrors(t *testing.T) {
	s, address := serve(t, anser.MaxMessage(1000))
	streams(s)
	anser.StreamMethod[args, reply]("Chat.Wait").Handle(s, func(ctx context.Context, _ *anser.Stream[reply, args]) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for version, c := range socketClients(t) {
		for name, row := range map[string]struct {
			path    string
			kind    websocket.MessageType
			send    []string
			headers []string
			status  websocket.StatusCode
			reason  string
			last    string
		}{
			"error":         {path: "/Chat.Echo", send: []string{`{"A":-7}`}, status: 4005, reason: "executed: no -7", last: `{"error":{"title":"not found","status":404,"detail":"no -7","code":"not_found","outcome":"executed"}}`},
			"no JSON":       {path: "/Chat.Echo", send: []string{`{"A":`}, status: 4003, reason: "decode", last: `"invalid_argument"`},
			"binary":        {path: "/Chat.Echo", kind: websocket.MessageBinary, send: []string{`{"A":1}`}, status: 1003, last: "send JSON as text"},
			"not UTF-8":     {path: "/Chat.Echo", send: []string{"\"\xff\""}, status: 1007, last: "UTF-8"},
			"after the end": {path: "/Chat.Wait", send: []string{"", "{}"}, status: 1008, last: "follows the last one"},
			"two requests":  {path: "/Chat.Count", send: []string{`{"A":1000000}`, "{}"}, status: 1008, last: "follows the last one"},
			"large":         {path: "/Chat.Echo", send: []string{`"` + strings.Repeat("x", 2000) + `"`}, status: 1009},
			"deadline":      {path: "/Chat.Wait?timeout=0.05", status: 4004, last: `"outcome":"`},
			"header":        {path: "/Chat.Wait", headers: []string{"Request-Timeout", "0.05"}, status: 4004, last: "deadline_exceeded"},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				ws := mustOpenSocket(t, c, address, row.path, row.headers...)
				if row.kind == 0 {
					row.kind = websocket.MessageText
				}
				for _, m := range row.send {
					ws.Write(t.Context(), row.kind, []byte(m)) // the server may have closed it
				}
				if last := ws.ends(row.status, row.reason); !strings.Contains(last, row.last) {
					t.Errorf("the last message is %s, want %s", last, row.last)
				}
			})
		}
		for name, row := range map[string]struct {
			path    string
			headers []string
			status  int
		}{
			"no stream":         {path: "/Arith.Mul", status: 400},
			"no method":         {path: "/Arith.Pow", status: 404},
			"other subprotocol": {path: "/Chat.Echo", headers: []string{"Sec-WebSocket-Protocol", "graphql-ws"}, status: 400},
			"token only":        {path: "/Chat.Echo", headers: []string{"Sec-WebSocket-Protocol", "anser.bearer.eA"}, status: 400},
			"bad token":         {path: "/Chat.Echo", headers: []string{"Sec-WebSocket-Protocol", "anser.json, anser.bearer.e"}, status: 400},
			"two tokens":        {path: "/Chat.Echo", headers: []string{"Sec-WebSocket-Protocol", "anser.json, anser.bearer.eA", "Authorization", "Bearer x"}, status: 400},
			"other parameter":   {path: "/Chat.Echo?a=1", status: 400},
			"two timeouts":      {path: "/Chat.Echo?timeout=1&timeout=2", status: 400},
			"no timeout":        {path: "/Chat.Echo?timeout=soon", status: 400},
			"key":               {path: "/Chat.Echo", headers: []string{"Idempotency-Key", "k"}, status: 501},
			"other page":        {path: "/Chat.Echo", headers: []string{"Origin", "https://evil.example"}, status: 403},
			"rebound name":      {path: "/Chat.Echo", headers: []string{"Origin", "http://evil.example", "Host", "evil.example"}, status: 403},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				_, resp, err := openSocket(t, c, address, row.path, row.headers...)
				if err == nil || resp == nil || resp.StatusCode != row.status {
					t.Errorf("%v, %v, want %d", resp, err, row.status)
				}
			})
		}
	}
}

// A page of an allowed origin may open sockets, and gives its token as a subprotocol, which the
// server does not repeat. Wrong tokens and withdrawn ones end the socket.
func TestSocketsOfPages(t *testing.T) {
	good := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(good)})
	if err != nil {
		t.Fatal(err)
	}
	s, address := serveWith(t, anser.Authenticate(tokens), anser.Protocols(protocols.HTTP(protocols.AllowOrigins("https://app.example"))))
	streams(s)
	for version, c := range socketClients(t) {
		open := func(token string, headers ...string) *socketClient {
			headers = append(headers, "Origin", "https://app.example", "Sec-WebSocket-Protocol", "anser.json, anser.bearer."+base64.RawURLEncoding.EncodeToString([]byte(token)))
			return mustOpenSocket(t, c, address, "/Chat.Count", headers...)
		}
		ws := open(good)
		if ws.Subprotocol() != "anser.json" {
			t.Errorf("%s: the subprotocol is %q", version, ws.Subprotocol())
		}
		ws.send(`{"A":1}`)
		ws.want(`{"C":0}`)
		ws.ends(websocket.StatusNormalClosure, "")
		if last := open("wrong").ends(4016, "refused"); !strings.Contains(last, "unauthenticated") {
			t.Errorf("%s: a wrong token: %s", version, last)
		}
		none := mustOpenSocket(t, c, address, "/Chat.Count", "Origin", "https://app.example")
		none.ends(4016, "refused")
		other, resp, err := openSocket(t, c, address, "/Chat.Count", "Origin", "https://evil.example", "Sec-WebSocket-Protocol", "anser.json, anser.bearer."+base64.RawURLEncoding.EncodeToString([]byte(good)))
		if err == nil || resp.StatusCode != 403 {
			t.Errorf("%s: another page: %v, %v", version, other, err)
		}
		mustOpenSocket(t, c, address, "/Chat.Count", "Authorization", "Bearer "+good).send(`{}`)
	}
}

// A client that is gone ends its call, and so does a server that goes away.
func TestSocketsEnd(t *testing.T) {
	for version, c := range socketClients(t) {
		began, ended := make(chan struct{}, 10), make(chan struct{}, 10)
		s, address := serve(t)
		anser.StreamMethod[args, reply]("Chat.Wait").Handle(s, func(ctx context.Context, _ *anser.Stream[reply, args]) error {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return ctx.Err()
		})
		for name, end := range map[string]func(*socketClient){
			"close":     func(ws *socketClient) { ws.Close(websocket.StatusNormalClosure, "") },
			"close now": func(ws *socketClient) { ws.CloseNow() },
			"after messages": func(ws *socketClient) {
				ws.send(`{"A":1}`)
				ws.send("")
				ws.CloseNow()
			},
		} {
			ws := mustOpenSocket(t, c, address, "/Chat.Wait")
			<-began
			end(ws)
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatalf("%s, %s: the handler goes on", version, name)
			}
		}
		ws := mustOpenSocket(t, c, address, "/Chat.Wait")
		<-began
		go s.Close()
		ws.ends(websocket.StatusGoingAway, "the server goes away")
		<-ended
	}
}

// A server that drains lets the open sockets end.
func TestSocketsDrain(t *testing.T) {
	for version, c := range socketClients(t) {
		s, address := serve(t)
		streams(s)
		ws := mustOpenSocket(t, c, address, "/Chat.Echo")
		ws.send(`{"A":1}`)
		ws.want(`{"C":1}`)
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		for { // until it drains
			nc, err := net.Dial("tcp", address)
			if err != nil {
				break
			}
			nc.Close()
		}
		ws.send(`{"A":2}`)
		ws.want(`{"C":2}`)
		ws.send("")
		ws.ends(websocket.StatusNormalClosure, "")
		if err := <-down; err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// A client that sends more than the handler receives is slowed down, and one that does not read
// slows the handler down.
func TestSocketsHoldBack(t *testing.T) {
	for version, c := range socketClients(t) {
		var sent atomic.Int64
		next := make(chan struct{})
		s, address := serve(t)
		anser.StreamMethod[string, string]("Chat.Take").Handle(s, func(_ context.Context, st *anser.Stream[string, string]) error {
			for range next {
				if _, err := st.Recv(); err != nil {
					return err
				}
			}
			return nil
		})
		anser.ServerStreamMethod[args, string]("Chat.Give").Handle(s, func(_ context.Context, _ *args, out anser.Sender[string]) error {
			for {
				m := strings.Repeat("x", 100<<10)
				if err := out.Send(&m); err != nil {
					return err
				}
				sent.Add(1)
			}
		})
		message := []byte(`"` + strings.Repeat("x", 100<<10) + `"`)
		ws := mustOpenSocket(t, c, address, "/Chat.Take")
		var written atomic.Int64
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range 1000 {
				if ws.Write(context.Background(), websocket.MessageText, message) != nil {
					return
				}
				written.Add(1)
			}
		}()
		stalls(t, version+": the client", &written, 900)
		ws.CloseNow()
		<-over
		close(next)
		reader := mustOpenSocket(t, c, address, "/Chat.Give")
		reader.send(`{}`)
		stalls(t, version+": the server", &sent, 900)
		reader.CloseNow()
		// Its deadline ends the call all the same.
		late := mustOpenSocket(t, c, address, "/Chat.Give?timeout=0.2")
		late.send(`{}`)
		for s.Stats().InFlight > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// stalls waits until a counter does not grow any more, which must be before most.
func stalls(t *testing.T, who string, n *atomic.Int64, most int64) {
	t.Helper()
	for last, same := int64(-1), 0; same < 20; time.Sleep(10 * time.Millisecond) {
		switch now := n.Load(); {
		case now >= most:
			t.Fatalf("%s has sent %d messages of 100 KiB that nothing has read", who, now)
		case now == last && now > 0:
			same++
		default:
			last, same = now, 0
		}
	}
}

// rawSocket opens a socket over HTTP/1.1 by hand.
func rawSocket(t *testing.T, address, path string, headers ...string) (net.Conn, string) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	head := "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	if len(headers) == 0 {
		headers = []string{"Sec-WebSocket-Version: 13"}
	}
	io.WriteString(nc, head+strings.Join(headers, "\r\n")+"\r\n\r\n")
	var b []byte
	for !bytes.HasSuffix(b, []byte("\r\n\r\n")) {
		var one [1]byte
		if _, err := nc.Read(one[:]); err != nil {
			t.Fatalf("%q, %v", b, err)
		}
		b = append(b, one[0])
	}
	return nc, string(b)
}

// frame is a frame of a client.
func frame(begin byte, payload string) []byte {
	b := []byte{begin, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		panic("the payload is long")
	}
	b = append(b, 0, 0, 0, 0) // the mask
	return append(b, payload...)
}

// Hostile frames end the socket, and cost the server no more than they cost the client.
func TestHostileSockets(t *testing.T) {
	s, address := serve(t, anser.MaxMessage(1000))
	streams(s)
	const text, binary, cont, ping, fin, packed = 1, 2, 0, 9, 0x80, 0x40
	for name, row := range map[string]struct {
		path   string
		frames [][]byte
		status int // 0: the connection ends
	}{
		"compressed":          {frames: [][]byte{frame(fin|packed|text, "x")}, status: 1002},
		"unknown opcode":      {frames: [][]byte{frame(fin|3, "x")}, status: 1002},
		"stray continuation":  {frames: [][]byte{frame(fin|cont, "x")}, status: 1002},
		"message in message":  {frames: [][]byte{frame(text, "{"), frame(fin|text, "}")}, status: 1002},
		"fragmented ping":     {frames: [][]byte{frame(ping, "x")}, status: 1002},
		"not masked":          {frames: [][]byte{{fin | text, 2, '{', '}'}}},
		"huge":                {frames: [][]byte{{fin | text, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte("x"), 2000)}, status: 1009},
		"many small parts":    {frames: append([][]byte{frame(text, `"`)}, slicesRepeat(frame(cont, strings.Repeat("x", 100)), 20)...), status: 1009},
		"fragments":           {frames: [][]byte{frame(text, `{"A"`), frame(fin|ping, ""), frame(cont, ":"), frame(cont, ""), frame(fin|cont, "-1}")}, status: 4005},
		"one byte of a frame": {frames: [][]byte{{fin | text}}, status: -1},
	} {
		t.Run(name, func(t *testing.T) {
			nc, head := rawSocket(t, address, "/Chat.Echo")
			if !strings.HasPrefix(head, "HTTP/1.1 101 ") || strings.Contains(head, "deflate") {
				t.Fatal(head)
			}
			for _, f := range row.frames {
				nc.Write(f)
			}
			if row.status < 0 {
				nc.Close()
				return
			}
			status := closeStatus(nc)
			if status != row.status {
				t.Errorf("the status is %d, want %d", status, row.status)
			}
		})
	}
	// A flood of pings is answered a while.
	nc, _ := rawSocket(t, address, "/Chat.Echo")
	go nc.Write(append(bytes.Repeat(frame(fin|ping, ""), 10_000), frame(fin|text, `{"A":-1}`)...))
	pongs := 0
	for {
		var head [2]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil || head[0] != fin|10 {
			break
		}
		pongs++
	}
	if pongs == 0 || pongs > 200 {
		t.Errorf("%d of 10,000 pings were answered", pongs)
	}
	for _, headers := range [][]string{{"Sec-WebSocket-Version: 12"}, {"X: y"}} {
		if _, head := rawSocket(t, address, "/Chat.Echo", headers...); !strings.HasPrefix(head, "HTTP/1.1 400 ") {
			t.Errorf("%v: %s", headers, head)
		}
	}
	for s.Stats().InFlight > 0 {
		time.Sleep(time.Millisecond)
	}
}

func slicesRepeat(f []byte, n int) (list [][]byte) {
	for range n {
		list = append(list, f)
	}
	return list
}

// closeStatus reads frames up to that which closes, and returns its status, or 0.
func closeStatus(nc net.Conn) int {
	for {
		var head [2]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return 0
		}
		size := int(head[1])
		if size == 126 {
			var long [2]byte
			io.ReadFull(nc, long[:])
			size = int(long[0])<<8 | int(long[1])
		}
		p := make([]byte, size)
		if _, err := io.ReadFull(nc, p); err != nil {
			return 0
		}
		if head[0] == 0x88 && len(p) >= 2 {
			return int(p[0])<<8 | int(p[1])
		}
	}
}
