package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/record"
	"github.com/anser-rpc/anser/registry"
)

// Calls over HTTP and gRPC are recorded as JSON, whatever the service takes, without their secrets.
func TestRecord(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "echo"}, echo(t))
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	dir := filepath.Join(t.TempDir(), "calls")
	g, err := gateway.New(&gateway.Config{Record: &gateway.Record{
		Dir: dir, Share: 1, Methods: []string{"demo.v1.Echo.*", "arith/*"}, Metadata: []string{"colour"}, Secret: []string{"A"},
	}}, gateway.Options{Registry: r, Server: []anser.ServerOption{anser.NoSignals()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, l) }()
	await(t, g, "echo", 4)
	await(t, g, "arith", 1)
	addr := l.Addr().String()
	post(t, "http://"+addr+"/echo/demo.v1.Echo.Say", `{"x": [1], "password": "hidden"}`, "Colour", "blue")
	in, _ := structpb.NewStruct(map[string]any{"token": "hidden"})
	data, _ := proto.Marshal(in)
	if _, err := callGRPC(t, addr, "demo.v1.Echo.Say", data); err != nil {
		t.Fatal(err)
	}
	post(t, "http://"+addr+"/demo.v1.Echo.Count", `"2"`, "Accept", "application/x-ndjson")
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A": 7, "B": 8}`); status != 200 {
		t.Fatal(status, body)
	}
	post(t, "http://"+addr+"/Arith.Mul", `{"A": 7, "B": 8}`) // no pattern matches it
	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	recorded, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	var got []string
	for c, err := range recorded.Calls(record.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s %s %s %v", c.Method, c.Request, c.Reply, c.Code, c.Metadata)
		for _, m := range c.Messages {
			line += " " + string(m.JSON)
		}
		got = append(got, line)
	}
	want := []string{
		`echo/demo.v1.Echo.Say {"password":"redacted","x":[1]} {"colour":"blue","from":"127.0.0.1","password":"redacted","te":"","x":[1]} ok map[colour:blue]`,
		`demo.v1.Echo.Say {"token":"redacted"} {"colour":"","from":"127.0.0.1","te":"","token":"redacted"} ok map[]`,
		`demo.v1.Echo.Count   ok map[] "2" "0" "1"`,
		`arith/Arith.Mul {"A":0,"B":8} {"C":56} ok map[]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := g.Apply(new(gateway.Config)); err == nil {
		t.Error("a gateway that has ended takes a configuration")
	}
}

func TestRecordThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := gateway.New(&gateway.Config{Record: &gateway.Record{Dir: file}}, gateway.Options{Registry: registry.NewMemory()})
	if err == nil || !strings.Contains(err.Error(), "folder of a recording") {
		t.Errorf("%v", err)
	}
}

// The part of the configuration cannot change, and a gateway with another one says so.
func TestRecordIsFixed(t *testing.T) {
	c := &gateway.Config{Record: &gateway.Record{Dir: filepath.Join(t.TempDir(), "calls")}}
	g, _ := start(t, registry.NewMemory(), c)
	for _, other := range []*gateway.Config{{}, {Record: &gateway.Record{Dir: "elsewhere"}}} {
		if err := g.Apply(other); err == nil || !strings.Contains(err.Error(), "record cannot change") {
			t.Errorf("%v", err)
		}
	}
	if err := g.Apply(&gateway.Config{Record: &gateway.Record{Dir: c.Record.Dir}}); err != nil {
		t.Error(err)
	}
}
