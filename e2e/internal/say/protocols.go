package say

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
)

// sayPath is the path of the method over HTTP, and in gRPC.
const sayPath = "/Hello/Say"

// file describes the service of the workload, whose messages are in a file of their own.
func file() (protoreflect.FileDescriptor, error) {
	messages := new(Message).ProtoReflect().Descriptor()
	name := proto.String("." + string(messages.FullName()))
	return protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("hello.proto"), Syntax: proto.String("proto3"), Dependency: []string{messages.ParentFile().Path()},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name:   proto.String("Hello"),
			Method: []*descriptorpb.MethodDescriptorProto{{Name: proto.String("Say"), InputType: name, OutputType: name}},
		}},
	}, one{messages.ParentFile()})
}

// one finds what is in one file.
type one struct{ protoreflect.FileDescriptor }

// FindFileByPath implements protodesc.Resolver.
func (o one) FindFileByPath(string) (protoreflect.FileDescriptor, error) {
	return o.FileDescriptor, nil
}

// FindDescriptorByName implements protodesc.Resolver.
func (o one) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return o.Messages().ByName(name.Name()), nil
}

// Descriptors returns the service of the workload as a serialized FileDescriptorSet.
func Descriptors() ([]byte, error) {
	f, err := file()
	if err != nil {
		return nil, err
	}
	return protocontract.Descriptors(f), nil
}

func sayContract() (*contract.Source, error) {
	f, err := file()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(protocontract.FromFiles(f))
	if err != nil {
		return nil, err
	}
	return protocontract.Source(string(text), &f), nil
}

// ServeProtocols is Serve for a server that speaks all protocols, and publishes its contract.
func ServeProtocols(commands io.Reader, answers io.Writer) error {
	s := anser.NewServer(anser.NoSignals(), protocols.All())
	has, err := sayContract()
	if err != nil {
		return err
	}
	if err := methodSay.Handle(s, func(_ context.Context, m *Message) (*Message, error) {
		benchpb.Answer(m)
		return m, nil
	}, anser.Contract(has)); err != nil {
		return err
	}
	return serveOn(s, commands, answers)
}

// ServeGateway is Serve for a gateway in front of the server at an address.
func ServeGateway(to string, commands io.Reader, answers io.Writer) error {
	r := registry.NewMemory()
	if err := r.Register(context.Background(), registry.Instance{Service: "hello", Address: to}); err != nil {
		return err
	}
	g, err := gateway.New(new(gateway.Config), gateway.Options{
		Registry: r, Server: []anser.ServerOption{anser.NoSignals()}, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	l, err := g.Server().Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, l) }()
	err = answerCommands(commands, answers, func() (Stat, error) { return stat(g.Server(), l.Addr().String()) })
	stop()
	return errors.Join(err, <-served)
}

// LoadGRPC is Load with grpc-go.
func LoadGRPC(o Options) (Result, error) {
	conns := make([]*grpc.ClientConn, 2) // as many as Anser has
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	h, end := grpcObserving(os.Getenv(ObserveVariable), otelgrpc.NewClientHandler)
	defer end()
	if h != nil {
		opts = append(opts, grpc.WithStatsHandler(h))
	}
	for i := range conns {
		c, err := grpc.NewClient("passthrough:///"+o.Addr, opts...)
		if err != nil {
			return Result{}, err
		}
		defer c.Close()
		conns[i] = c
	}
	in := benchpb.Filled()
	return together(o, func(i int) error {
		return conns[i%len(conns)].Invoke(context.Background(), sayPath, in, new(Message))
	}, func(i int) ([]time.Duration, error) {
		return inTurn(o, func() error {
			out := new(Message)
			if err := conns[i%len(conns)].Invoke(context.Background(), sayPath, in, out); err != nil {
				return err
			}
			return check(out)
		})
	})
}

// LoadJSON is Load in JSON over HTTP/1.1, each caller on a connection of its own. It accepts no
// gzip, with which not all servers answer.
func LoadJSON(o Options) (Result, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Callers, DisableCompression: true}}
	defer client.CloseIdleConnections()
	body, err := protojson.Marshal(benchpb.Filled())
	if err != nil {
		return Result{}, err
	}
	call := func() error {
		resp, err := client.Post("http://"+o.Addr+sayPath, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"OK"`)) {
			return fmt.Errorf("%s: %.200q", resp.Status, text)
		}
		return nil
	}
	return together(o, func(int) error { return call() }, func(int) ([]time.Duration, error) { return inTurn(o, call) })
}

// inTurn makes the calls of one caller, and returns what they took.
func inTurn(o Options, call func() error) ([]time.Duration, error) {
	n := o.Calls / o.Callers
	mine := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		mine = append(mine, time.Since(began))
	}
	return mine, nil
}

func check(out *Message) error {
	if !benchpb.Answered(out) {
		return fmt.Errorf("wrong reply %v", out)
	}
	return nil
}

// listen returns a listener on a free port of the loopback.
func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// answerFor answers the commands for what serves the listener.
func answerFor(l net.Listener, commands io.Reader, answers io.Writer) error {
	return answerCommands(commands, answers, func() (Stat, error) {
		rss, err := residentBytes()
		return Stat{Addr: l.Addr().String(), CPU: cpuTime().Seconds(), RSS: rss}, err
	})
}
