package protocols_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// Requests that are not complete count for the memory of the server, and what they held is free
// again when their clients are gone.
func TestIncompleteRequestsCountForMemory(t *testing.T) {
	s, address := serve(t, anser.MaxMessage(1<<20), anser.MaxMemory(4<<20))
	anser.Handle(s, "Echo.Size", func(_ context.Context, in *string) (*int, error) {
		n := len(*in)
		return &n, nil
	})
	for version, c := range clients(t) {
		var pipes []*io.PipeWriter
		ends := make(chan string, 100)
		for range 40 {
			body, w := io.Pipe()
			pipes = append(pipes, w)
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/Echo.Size", body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			go func() {
				resp, err := c.Do(r)
				if err != nil {
					ends <- err.Error()
					return
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				ends <- string(b)
			}()
			go w.Write(append([]byte{'"'}, bytes.Repeat([]byte("x"), 200<<10)...))
		}
		select {
		case end := <-ends:
			if !strings.Contains(end, "anser.MaxMemory") {
				t.Errorf("%s: a request that is not complete ends with %q", version, end)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: 40 requests of 200 KiB fit into 4 MiB", version)
		}
		for _, w := range pipes {
			w.CloseWithError(io.ErrUnexpectedEOF)
		}
		for i := 0; ; i++ {
			resp := send(t, c, "http://"+address+"/Echo.Size", `"`+strings.Repeat("x", 1<<19)+`"`)
			if got := text(t, resp); got == fmt.Sprint(1<<19) {
				break
			} else if i > 1000 {
				t.Fatalf("%s: the memory is not free again: %s", version, got)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// A connection may try some wrong credentials, and then none.
func TestWrongCredentials(t *testing.T) {
	good := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(good)})
	if err != nil {
		t.Fatal(err)
	}
	_, address := serve(t, anser.Authenticate(tokens))
	c := clients(t)["HTTP/2"]
	call := func(token string) int {
		resp := send(t, c, "http://"+address+"/Arith.Mul", `{"A":1,"B":1}`, "Authorization", "Bearer "+token)
		text(t, resp)
		return resp.StatusCode
	}
	if status := call(good); status != 200 {
		t.Errorf("the good token: %d", status)
	}
	for i := range 100 {
		if status := call(fmt.Sprint("wrong", i)); status != 401 {
			t.Fatalf("wrong token %d: %d", i, status)
		}
	}
	if status := call("one more"); status != 429 {
		t.Errorf("one wrong token too many: %d", status)
	}
	if status := call(good); status != 200 {
		t.Errorf("the good token after that: %d", status)
	}
}

// A server that drains finishes the calls that it has begun, and their callers get the answers.
func TestDrainAnswersCalls(t *testing.T) {
	for range 20 {
		for version, c := range clients(t) {
			s, address := serve(t)
			began, end := make(chan struct{}, 10), make(chan struct{})
			anser.Handle(s, "Arith.Wait", func(context.Context, *args) (*reply, error) {
				began <- struct{}{}
				<-end
				return &reply{1}, nil
			})
			answers := make(chan string, 10)
			for range 10 {
				go func() {
					resp, err := c.Post("http://"+address+"/Arith.Wait", "application/json", strings.NewReader("{}"))
					if err != nil {
						answers <- err.Error()
						return
					}
					defer resp.Body.Close()
					b, err := io.ReadAll(resp.Body)
					if err != nil {
						answers <- err.Error()
						return
					}
					answers <- string(b)
				}()
			}
			for range 10 {
				<-began
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(ctx) }()
			close(end)
			for range 10 {
				if got := <-answers; got != `{"C":1}` {
					t.Errorf("%s: the answer is %q", version, got)
				}
			}
			c.CloseIdleConnections() // the server would keep them for a second
			if err := <-down; err != nil {
				t.Errorf("%s: Shutdown: %v", version, err)
			}
			cancel()
		}
	}
}

// A connection on which no request has come ends with an answer: a request that was on its way did
// not run, and its client could not know that otherwise.
func TestUnusedConnectionsAreAnswered(t *testing.T) {
	for name, opts := range map[string][]anser.ServerOption{
		"HandshakeTimeout": {anser.HandshakeTimeout(50 * time.Millisecond)},
		"MaxHandshakes":    {anser.HandshakeTimeout(time.Hour), anser.MaxHandshakes(1)},
	} {
		_, address := serve(t, opts...)
		var first net.Conn
		for range 2 {
			nc, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if first == nil {
				first = nc
			}
		}
		in := bufio.NewReader(first)
		if _, err := in.Peek(1); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// The client has not noticed it yet.
		io.WriteString(first, "POST /Arith.Mul HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"A\":7,\"B\":8}")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer resp.Body.Close()
		var problem struct{ Code, Outcome string }
		if err := json.NewDecoder(resp.Body).Decode(&problem); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if resp.StatusCode != http.StatusRequestTimeout || !resp.Close || resp.Header.Get("Anser-Outcome") != "refused" || problem.Outcome != "refused" || problem.Code != "unavailable" {
			t.Errorf("%s: %s, %v, %+v", name, resp.Status, resp.Header, problem)
		}
		if more, err := io.ReadAll(in); len(more) > 0 || err != nil {
			t.Errorf("%s: then %q, %v", name, more, err)
		}
	}
}

// A server that is at its limit of connections says so to clients of HTTP, as it does to clients of
// Anser.
func TestMaxConns(t *testing.T) {
	s, address := serve(t, anser.MaxConns(1))
	anser.Handle(s, "Arith.One", func(context.Context, *args) (*reply, error) { return &reply{1}, nil })
	idleConn(t, address)
	one := clients(t)["HTTP/1.1"]
	resp := send(t, one, "http://"+address+"/Arith.Mul", `{"A":7,"B":8}`)
	if got := text(t, resp); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Anser-Outcome") != "refused" || !strings.Contains(got, "anser.MaxConns") {
		t.Errorf("%s %s", resp.Status, got)
	}
	c, err := anser.Dial(address, anser.Attempts(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := anser.Call[reply](t.Context(), c, "Arith.Mul", &args{7, 8}, anser.WithFailMode(anser.Failfast)); err == nil || !strings.Contains(err.Error(), "anser.MaxConns") {
		t.Errorf("a client of Anser: %v", err)
	}
	if n := s.Stats().LimitsHit["MaxConns"]; n < 2 {
		t.Errorf("the limit was hit %d times, want 2 or more", n)
	}
}
