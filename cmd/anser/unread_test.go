package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/record"
)

// recordCalls returns the folder of a recording.
func recordCalls(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r, err := record.New(record.Options{Dir: dir, Share: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(r.Option())
	arith.Register(s)
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := anser.Call[arith.Reply](t.Context(), c, "Arith.Mul", &arith.Args{A: 2, B: 3}); err != nil {
			t.Error(err)
		}
	}
	c.Close()
	s.Close()
	<-served
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A command whose output is no longer read, as before "| head", ends without a word and
// successfully, unless something else is wrong.
func TestUnread(t *testing.T) {
	t.Parallel()
	dir := recordCalls(t)
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"record", dir, "--calls"}, 0},
		{[]string{"record", dir, "--calls", "--json"}, 0},
		{[]string{"record", dir, "--json"}, 0},
		{[]string{"record", dir}, 0},
		{[]string{"version", "--json"}, 0},
		{[]string{"--help"}, 0},
		{[]string{"record", dir + "/none", "--calls"}, 2},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		cmd := exec.CommandContext(t.Context(), os.Args[0], test.args...)
		var said bytes.Buffer
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0"), writer, &said
		cmd.Run() // the code says how it ended
		writer.Close()
		if code := cmd.ProcessState.ExitCode(); code != test.code || (said.Len() > 0) != (code != 0) {
			t.Errorf("anser %q ends with %d, want %d: %s", test.args, code, test.code, &said)
		}
	}
}
