package anser_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// Large messages may refer to the bytes that arrived. Handlers and callers keep them, and no later
// message may overwrite them.
func TestLargeMessagesStayAsTheyAre(t *testing.T) {
	for name, opts := range map[string][]anser.DialOption{"plain": nil, "checksums": {anser.Checksums()}, "one connection": {anser.Conns(1)}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := anser.NewServer(silent)
			var mu sync.Mutex
			var bytesKept []*[]byte
			var textKept []*benchpb.BenchmarkMessage
			anser.Handle(s, "Keep.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				bytesKept = append(bytesKept, in)
				return in, nil
			})
			anser.Handle(s, "Keep.Text", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
				mu.Lock()
				defer mu.Unlock()
				textKept = append(textKept, in)
				return in, nil
			})
			go s.Serve(l)
			t.Cleanup(func() { s.Close() })
			c, err := anser.Dial(l.Addr().String(), opts...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			const callers, calls = 8, 12
			var done sync.WaitGroup
			for i := range callers {
				done.Go(func() {
					for n := range calls {
						letter := string(rune('a' + (i*calls+n)%26))
						text := strings.Repeat(letter, 1000+n*n*3000)
						in, out := []byte(text), []byte(nil)
						message := benchpb.Filled()
						message.Field1 = &text
						if err := c.Call(context.Background(), "Keep.Bytes", &in, &out); err != nil {
							t.Error(err)
							return
						}
						reply, err := anser.Call[benchpb.BenchmarkMessage](context.Background(), c, "Keep.Text", message)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						bytesKept, textKept = append(bytesKept, &out), append(textKept, reply)
						mu.Unlock()
					}
				})
			}
			done.Wait()
			mu.Lock()
			defer mu.Unlock()
			if want := 2 * callers * calls; len(bytesKept) != want || len(textKept) != want {
				t.Fatalf("%d and %d messages, want %d", len(bytesKept), len(textKept), want)
			}
			for _, b := range bytesKept {
				if bytes.Count(*b, (*b)[:1]) != len(*b) {
					t.Errorf("%d bytes of %q were overwritten", len(*b), (*b)[:1])
				}
			}
			for _, m := range textKept {
				if text := m.GetField1(); strings.Count(text, text[:1]) != len(text) || m.GetField9() != benchpb.Filled().GetField9() {
					t.Errorf("a text of %d bytes %q was overwritten", len(text), text[:1])
				}
			}
		})
	}
}
