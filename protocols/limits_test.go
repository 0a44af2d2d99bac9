package protocols_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
