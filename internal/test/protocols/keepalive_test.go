package protocols_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/protocols"
)

// bubble is a server and a stock grpc-go client in a synctest bubble.
type bubble struct {
	*anser.Server
	conn  *grpc.ClientConn
	dials int // connections of the client
}

// inBubble starts them. The client sends a PING after 10 s, its minimum, as the server must expect
// of clients that are configured for it.
func inBubble(t *testing.T, http []protocols.Option, opts ...anser.ServerOption) *bubble {
	t.Helper()
	b := &bubble{Server: anser.NewServer(append(opts, silent, anser.NoSignals(), protocols.All(http...))...)}
	addDoors(b.Server)
	var network ansertest.Network
	served := make(chan error, 1)
	l := network.Listen("127.0.0.1:1")
	go func() { served <- b.Serve(l) }()
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		b.dials++
		return network.Dial(ctx, "tcp", address)
	}
	var err error
	b.conn, err = grpc.NewClient("passthrough:///127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial),
		grpc.WithIdleTimeout(0), grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.conn.Close()
		b.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return b
}

func (b *bubble) open(ctx context.Context) error {
	return b.conn.Invoke(ctx, "/test.Doors/Open", new(wrapperspb.StringValue), new(wrapperspb.StringValue), grpc.WaitForReady(true))
}

// watch opens a stream on which nothing more arrives, and returns what ends it and when.
func (b *bubble) watch(t *testing.T, most time.Duration) (after time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	began := time.Now()
	st, err := b.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Doors/Watch", grpc.WaitForReady(true))
	if err != nil {
		return time.Since(began), err
	}
	in := new(wrapperspb.StringValue)
	if err := st.RecvMsg(in); err != nil {
		return time.Since(began), err
	}
	err = st.RecvMsg(in)
	return time.Since(began), err
}

// grpc-go clients that ping as often as they can keep their connections, idle or not.
func TestKeepaliveOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, nil)
		if after, err := b.watch(t, time.Hour); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a stream without messages ends after %v with %v", after, err)
		}
		time.Sleep(time.Hour)
		if err := b.open(t.Context()); err != nil || b.dials != 1 {
			t.Errorf("after an idle hour: %v, over connection %d", err, b.dials)
		}
	})
}

// With the policy of grpc-go's servers, they are disconnected after two PING frames too many, and
// ping half as often on each further connection.
func TestKeepaliveEnforcement(t *testing.T) {
	for name, row := range map[string]struct {
		policy protocols.EnforcementPolicy
		idle   bool
	}{
		"the policy of grpc-go, with a stream": {policy: protocols.EnforcementPolicy{MinTime: 5 * time.Minute}},
		"with PING frames only for streams":    {policy: protocols.EnforcementPolicy{}, idle: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := inBubble(t, []protocols.Option{protocols.KeepaliveEnforcementPolicy(row.policy)})
				if row.idle {
					if err := b.open(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(39 * time.Second) // a PING in time and two early ones
					before := b.dials
					time.Sleep(2 * time.Second)
					if err := b.open(t.Context()); err != nil || before != 1 || b.dials != 2 {
						t.Errorf("%v, %d connections before the third early PING, %d after it", err, before, b.dials)
					}
					return
				}
				last := time.Duration(0)
				for i := range 10 {
					after, err := b.watch(t, time.Hour)
					if status.Code(err) == codes.DeadlineExceeded {
						if i != 2 { // 10 and 20 s were too often; before 40 s pass, the server has sent a PING itself
							t.Errorf("stream %d lasts", i)
						}
						return
					}
					if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "too_many_pings") {
						t.Fatalf("stream %d ends with %v", i, err)
					}
					if after < 2*last || after < 29*time.Second {
						t.Errorf("stream %d ends after %v, the one before it after %v", i, after, last)
					}
					last = after
				}
				t.Error("no stream lasts")
			})
		})
	}
	s := anser.NewServer(anser.NoSignals(), silent, protocols.All(protocols.KeepaliveEnforcementPolicy(protocols.EnforcementPolicy{MinTime: -1})))
	if err := s.Serve(new(ansertest.Network).Listen("127.0.0.1:1")); err == nil || !strings.Contains(err.Error(), "MinTime is -1ns: want at least 0") {
		t.Errorf("a negative time: %v", err)
	}
}

// The times that anser.Keepalive promises hold for clients of gRPC: one that is gone is noticed.
func TestKeepaliveOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network ansertest.Network
		s := anser.NewServer(silent, anser.NoSignals(), anser.Keepalive(20*time.Second, 5*time.Second), protocols.All())
		gone := make(chan time.Time, 1)
		anser.HandleStream(s, "test.Doors.Watch", func(ctx context.Context, st *anser.Stream[wrapperspb.StringValue, wrapperspb.StringValue]) error {
			err := st.Send(wrapperspb.String("here"))
			<-ctx.Done()
			gone <- time.Now()
			return err
		})
		served := make(chan error, 1)
		l := network.Listen("127.0.0.1:1") // before the client dials
		go func() { served <- s.Serve(l) }()
		var line *ansertest.FaultyConn
		conn, err := grpc.NewClient("passthrough:///127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				nc, err := network.Dial(ctx, "tcp", address)
				if err != nil {
					return nil, err
				}
				line = ansertest.Faulty(nc, ansertest.Faults{})
				return line, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		st, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Doors/Watch")
		if err != nil {
			t.Fatal(err)
		}
		if err := st.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		select {
		case <-gone:
			t.Fatal("a client that answers has lost its stream")
		default:
		}
		line.Stall() // nothing of the client arrives any more
		began := time.Now()
		if after := (<-gone).Sub(began); after > 26*time.Second {
			t.Errorf("the handler learns of it after %v", after)
		}
		synctest.Wait()
		if n := s.Stats().Closed["TIMEOUT"]; n != 1 {
			t.Errorf("connections closed: %v", s.Stats().Closed)
		}
		line.Cut()
		conn.Close()
		s.Close()
		<-served
	})
}

// IdleTimeout counts the calls of all callers of a connection, and closes one that has none.
func TestIdleConnectionsOfGRPC(t *testing.T) {
	token := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(token)})
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]anser.ServerOption{"without identities": nil, "with tokens": {anser.Authenticate(tokens)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := inBubble(t, nil, append(opts, anser.IdleTimeout(time.Minute))...)
				ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
				for range 20 {
					if err := b.open(ctx); err != nil {
						t.Fatal(err)
					}
					time.Sleep(50 * time.Second)
				}
				if b.dials != 1 {
					t.Errorf("%d connections, although each was in use", b.dials)
				}
				time.Sleep(13 * time.Second)
				if n := b.Stats().Conns; n != 0 {
					t.Errorf("after a minute without a call, %d connections are open", n)
				}
				if after, err := b.watch(t, time.Hour); name == "without identities" && status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("a stream ends after %v with %v", after, err)
				}
			})
		})
	}
}
