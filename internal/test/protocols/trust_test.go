package protocols_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// The methods of these tests.
const (
	open   anser.Method[wrapperspb.StringValue, wrapperspb.StringValue] = "test.Doors.Open"
	locked anser.Method[wrapperspb.StringValue, wrapperspb.StringValue] = "test.Doors.Locked"
)

func addDoors(s *anser.Server) {
	say := func(ctx context.Context, _ *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		name := "nobody"
		if id := anser.IdentityFrom(ctx); id != nil {
			name = id.Subject
		}
		return wrapperspb.String(name), nil
	}
	open.Handle(s, say)
	locked.Handle(s, say)
	anser.HandleStream(s, "test.Doors.Watch", func(ctx context.Context, st *anser.Stream[wrapperspb.StringValue, wrapperspb.StringValue]) error {
		if err := st.Send(wrapperspb.String("here")); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// Two callers share a connection, as behind a proxy, and each keeps its own identity. An open
// stream ends when its caller loses the right to it, and the other caller goes on.
func TestTwoIdentitiesOnOneConnection(t *testing.T) {
	ann, bob := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(ann)}, auth.Grant{Subject: "bob", SHA256: auth.Digest(bob)})
	if err != nil {
		t.Fatal(err)
	}
	conn := dialGRPC(t, serve(t, addDoors, anser.Authenticate(tokens)))
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	for range 3 {
		for want, token := range map[string]string{"ann": ann, "bob": bob} {
			out := new(wrapperspb.StringValue)
			if err := conn.Invoke(as(token), "/test.Doors/Open", new(wrapperspb.StringValue), out); err != nil || out.Value != want {
				t.Errorf("the handler has seen %q, %v, want %q", out.Value, err, want)
			}
		}
	}
	st, err := conn.NewStream(as(bob), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Doors/Watch")
	if err != nil {
		t.Fatal(err)
	}
	in := new(wrapperspb.StringValue)
	if err := st.RecvMsg(in); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Set(auth.Grant{Subject: "ann", SHA256: auth.Digest(ann)}); err != nil {
		t.Fatal(err)
	}
	if err := st.RecvMsg(in); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream of a caller whose token was withdrawn ends with %v", err)
	}
	if err := conn.Invoke(as(ann), "/test.Doors/Open", new(wrapperspb.StringValue), in); err != nil {
		t.Errorf("the other caller: %v", err)
	}
}

// A server that other machines reach refuses every protocol without TLS and authentication.
func TestPublicWithoutProtection(t *testing.T) {
	s, _ := start(t, addDoors)
	if l, err := net.Listen("tcp", "0.0.0.0:0"); err == nil {
		if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), "InsecurePublic") {
			t.Errorf("Serve: %v", err)
		}
	}
}
