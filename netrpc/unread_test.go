package netrpc_test

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// unread is a client that reads nothing until the test does.
type unread struct {
	net.Conn
	gob    bool
	encode *gob.Encoder
	decode *gob.Decoder
	read   *json.Decoder
	calls  int
}

// unreadSize is the size of the replies of Echo.Large.
const unreadSize = 1 << 20

// eachUnread runs a test with each codec. The handlers of Echo.Large count in begun and wait for
// release.
func eachUnread(t *testing.T, memory int, test func(t *testing.T, s *anser.Server, c *unread, begun *atomic.Int64, release chan struct{})) {
	for name, codec := range map[string]func(io.ReadWriteCloser) netrpc.ServerCodec{"gob": nil, "JSON-RPC": jsonrpc.NewServerCodec} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begun atomic.Int64
				release := make(chan struct{})
				runs := anser.NewServer(anser.MaxMemory(memory), anser.Logger(slog.New(slog.DiscardHandler)))
				t.Cleanup(func() { runs.Close() })
				anser.Handle(runs, "Echo.Large", func(context.Context, *Args) (*string, error) {
					begun.Add(1)
					<-release
					reply := strings.Repeat("x", unreadSize)
					return &reply, nil
				}, anser.Concurrent())
				s := quiet()
				s.Anser = runs
				conn := serveInMemory(t, s, codec)()
				defer conn.Close()
				test(t, runs, &unread{conn, codec == nil, gob.NewEncoder(conn), gob.NewDecoder(conn), json.NewDecoder(conn), 0}, &begun, release)
				synctest.Wait()
				if st := runs.Stats(); st.Memory != 0 || st.InFlight != 0 {
					t.Errorf("%d bytes are held by %d calls in the end", st.Memory, st.InFlight)
				}
			})
		})
	}
}

// call makes a call.
func (u *unread) call(t *testing.T) {
	t.Helper()
	u.calls++
	var err error
	if u.gob {
		err = errors.Join(u.encode.Encode(&netrpc.Request{ServiceMethod: "Echo.Large", Seq: uint64(u.calls)}), u.encode.Encode(new(Args)))
	} else {
		_, err = fmt.Fprintf(u, `{"method":"Echo.Large","id":%d,"params":[{}]}`, u.calls)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answers reads the answers of all calls, and returns how many are errors which say that the reply
// was dropped. The rest must be replies.
func (u *unread) answers(t *testing.T) (dropped int64) {
	t.Helper()
	for range u.calls {
		var r struct {
			Error  any
			Result string
		}
		var err error
		if u.gob {
			var head netrpc.Response
			err = u.decode.Decode(&head)
			if head.Error != "" {
				r.Error = head.Error
				err = errors.Join(err, u.decode.DecodeValue(reflect.Value{}))
			} else {
				err = errors.Join(err, u.decode.Decode(&r.Result))
			}
		} else {
			err = u.read.Decode(&r)
		}
		switch text, _ := r.Error.(string); {
		case err != nil:
			t.Fatal(err)
		case strings.Contains(text, "anser.MaxMemory"):
			dropped++
		case r.Error != nil || len(r.Result) != unreadSize:
			t.Fatalf("%v, and a reply of %d bytes", r.Error, len(r.Result))
		}
	}
	return dropped
}

// Replies that a client leaves unread are counted, and beyond twice MaxMemory dropped: also those
// of handlers that end at the same time.
func TestUnreadReplies(t *testing.T) {
	const memory, calls = 16 << 20, 100
	eachUnread(t, memory, func(t *testing.T, s *anser.Server, c *unread, begun *atomic.Int64, release chan struct{}) {
		for range calls {
			c.call(t)
		}
		synctest.Wait()
		if n := begun.Load(); n != calls {
			t.Fatalf("%d handlers run, want all", n)
		}
		close(release)
		synctest.Wait()
		st := s.Stats()
		dropped := st.LimitsHit["MaxMemory"]
		if st.Memory > 2*memory || dropped < calls-2*memory/unreadSize-5 {
			t.Errorf("%d bytes are held, %v", st.Memory, st.LimitsHit)
		}
		if n := c.answers(t); n != dropped {
			t.Errorf("%d calls failed, and %d replies were dropped", n, dropped)
		}
		synctest.Wait()
		if n := s.Stats().Methods["Echo.Large"].Failed; n != dropped {
			t.Errorf("%d calls count as failed, and %d replies were dropped", n, dropped)
		}
	})
}

// While a client leaves many bytes of replies unread, the handlers of its next calls do not begin.
// When it reads, all of its calls succeed.
func TestUnreadRepliesStopHandlers(t *testing.T) {
	const memory = 16 << 20
	eachUnread(t, memory, func(t *testing.T, s *anser.Server, c *unread, begun *atomic.Int64, release chan struct{}) {
		close(release)
		for s.Stats().Memory < memory/4 && c.calls < 100 {
			c.call(t)
			synctest.Wait()
		}
		before := begun.Load()
		for range 100 {
			c.call(t)
		}
		synctest.Wait()
		if n := begun.Load() - before; n > 0 {
			t.Errorf("%d handlers have begun while %d bytes are unread", n, s.Stats().Memory)
		}
		if n := c.answers(t); n > 0 {
			t.Errorf("%d replies were dropped", n)
		}
	})
}

// The responses of a batch over JSON-RPC count for the memory of the server until they are sent,
// and those for which there is none are errors. Nothing is left of a batch that is not answered.
func TestResponsesOfABatch(t *testing.T) {
	const memory, calls = 16 << 20, 50
	for _, lost := range []bool{false, true} {
		eachUnread(t, memory, func(t *testing.T, s *anser.Server, c *unread, begun *atomic.Int64, release chan struct{}) {
			if c.gob {
				close(release)
				return
			}
			var batch []string
			for id := range calls {
				batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","method":"Echo.Large","id":%d,"params":{}}`, id))
			}
			if _, err := fmt.Fprintf(c, "[%s]", strings.Join(batch, ",")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := begun.Load(); n != calls {
				t.Fatalf("%d handlers run, want all", n)
			}
			if lost {
				for range calls - 1 {
					release <- struct{}{}
				}
				synctest.Wait()
				if st := s.Stats(); st.Memory < memory-2*unreadSize || st.Memory > memory {
					t.Errorf("%d bytes are held", st.Memory)
				}
				c.Close()
				close(release)
				return
			}
			close(release)
			var responses []struct {
				Error  *struct{ Message string }
				Result string
			}
			if err := c.read.Decode(&responses); err != nil {
				t.Fatal(err)
			}
			replies := 0
			for _, r := range responses {
				switch {
				case r.Error == nil && len(r.Result) == unreadSize:
					replies++
				case r.Error == nil || !strings.Contains(r.Error.Message, "anser.MaxMemory"):
					t.Errorf("%+v, and a result of %d bytes", r.Error, len(r.Result))
				}
			}
			if want := memory/unreadSize - 1; len(responses) != calls || replies != want {
				t.Errorf("%d responses, and %d replies, want %d and %d", len(responses), replies, calls, want)
			}
			synctest.Wait()
			if n := s.Stats().Methods["Echo.Large"].Failed; n != calls-int64(replies) {
				t.Errorf("%d calls count as failed", n)
			}
		})
	}
}
