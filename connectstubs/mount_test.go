package connectstubs_test

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/connectstubs"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

func newClient(c *anser.Client) pingpbconnect.PingServiceClient {
	return pingpbconnect.NewPingServiceClient(connect.NewClient(connectstubs.NewTransport(c)))
}

// methodNamed returns the descriptor of a method.
func methodNamed(name protoreflect.Name) protoreflect.MethodDescriptor {
	return pb.File_connectstubs_internal_pingpb_ping_proto.Services().ByName("PingService").Methods().ByName(name)
}

// Handlers that cannot be served are refused with the reason.
func TestHandlersThatAreRefused(t *testing.T) {
	serving := func(spec connect.Spec) *connect.Server {
		handlers := connect.NewServer()
		handlers.Register(connect.Method{Spec: spec})
		return handlers
	}
	unknown := connect.NewServer()
	pingpbconnect.RegisterPingServiceHandler(unknown, numbers{})
	unknown.SetUnknownHandler(func(context.Context, connect.Spec, connect.ServerStream) error { return nil })
	for _, test := range []struct {
		name     string
		handlers *connect.Server
		want     string
	}{
		{"nil", nil, "nil"},
		{"no methods", connect.NewServer(), "register services before"},
		{"unknown procedures", unknown, "SetUnknownHandler"},
		{"no schema", serving(connect.Spec{Procedure: "/a.B/C"}), "schema of the method a.B.C"},
		{"other schema", serving(connect.Spec{Procedure: "/a.B/C", Schema: "text"}), "schema of the method a.B.C is a string"},
		{"procedure", serving(connect.Spec{Procedure: "C", Schema: methodNamed("Ping")}), "malformed procedure"},
		{"type", serving(connect.Spec{Procedure: "/a.B/C", Schema: methodNamed("Ping"), StreamType: 7}), "unknown type"},
		{"messages", serving(connect.Spec{Procedure: "/a.B/C", Schema: foreignMethod(t)}), "no Go type of the message a.M"},
	} {
		if err := connectstubs.Mount(anser.NewServer(silent), test.handlers); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	handlers := connect.NewServer()
	pingpbconnect.RegisterPingServiceHandler(handlers, numbers{})
	s := anser.NewServer(silent)
	if err := connectstubs.Mount(s, handlers); err != nil {
		t.Fatal(err)
	}
	if err := connectstubs.Mount(s, handlers); err == nil {
		t.Error("the same methods are served twice")
	}
	if err := connectstubs.Mount(nil, handlers); err == nil {
		t.Error("a server that is nil serves")
	}
}

// foreignMethod returns a method whose messages have no Go types in this program.
func foreignMethod(t *testing.T) protoreflect.MethodDescriptor {
	t.Helper()
	text := func(s string) *string { return &s }
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: text("a.proto"), Package: text("a"), Syntax: text("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: text("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: text("B"), Method: []*descriptorpb.MethodDescriptorProto{{Name: text("C"), InputType: text(".a.M"), OutputType: text(".a.M")}},
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Services().Get(0).Methods().Get(0)
}

// A handler that replies not once but never or twice is an error.
func TestRepliesOfHandlers(t *testing.T) {
	for _, replies := range []int{0, 1, 2} {
		handlers := connect.NewServer()
		handlers.Register(connect.Method{
			Spec: connect.Spec{Procedure: pingpbconnect.PingServicePingProcedure, Schema: methodNamed("Ping")},
			Handler: func(_ context.Context, _ connect.Spec, st connect.ServerStream) error {
				if err := st.SendHeaders(); err != nil {
					return err
				}
				for range replies {
					if err := st.Send(new(pb.PingResponse)); err != nil {
						return err
					}
				}
				return nil
			},
		})
		if _, err := newClient(serve(t, handlers)).Ping(t.Context(), new(pb.PingRequest)); (err == nil) != (replies == 1) {
			t.Errorf("%d replies: %v", replies, err)
		}
	}
}

// The options of Mount apply to its methods.
func TestOptionsOfMount(t *testing.T) {
	handlers := connect.NewServer()
	pingpbconnect.RegisterPingServiceHandler(handlers, numbers{})
	if err := connectstubs.Mount(anser.NewServer(silent), handlers, nil); err == nil {
		t.Error("an option that is nil is taken")
	}
}
