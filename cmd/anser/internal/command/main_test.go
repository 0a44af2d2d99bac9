package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/command"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/compress/all"
)

func TestMain(m *testing.M) {
	os.Unsetenv(target.RegistryVariable)
	goleak.VerifyTestMain(m)
}

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// run runs a command in this process.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t, "", args...)
}

// runWith runs a command with an input. Unless its arguments set a timeout, it gets a long one for
// a busy machine.
func runWith(t *testing.T, in string, args ...string) result {
	t.Helper()
	if takesTimeout(args) && !slices.Contains(args, "--timeout") {
		args = append(slices.Clone(args), "--timeout", "2m")
	}
	var out, errOut bytes.Buffer
	code := command.Run(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// takesTimeout reports whether the command has this flag.
func takesTimeout(args []string) bool {
	if slices.Contains(args, "--help") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--timeout=") }) {
		return false
	}
	switch words := append(slices.Clone(args), "", ""); words[0] {
	case "call", "describe", "doctor", "explain", "ls", "bench", "breaking", "export", "replay", "top", "tail":
		return words[1] != "serve"
	case "rules":
		return slices.Contains([]string{"get", "set", "diff", "dry-run", "history", "rollback", "delete"}, words[1])
	case "file":
		return slices.Contains([]string{"ls", "rm"}, words[1])
	}
	return false
}

// runLonger expects that a command that waits until its timeout has printed the parts, which a slow
// machine may know late: it runs again with a longer timeout until they are there.
func runLonger(t *testing.T, args []string, code int, parts ...string) {
	t.Helper()
	var r result
	for _, timeout := range []string{"3s", "20s", "2m"} {
		r = run(t, append(slices.Clone(args), "--timeout", timeout)...)
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(r.out+r.err, part) }) {
			break
		}
	}
	r.expect(t, code, parts...)
}

// decode reads the output as JSON.
func (r result) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.out), v); err != nil {
		t.Fatalf("the output is not JSON: %v\n%s%s", err, r.out, r.err)
	}
}

// expect checks the exit code and parts of the output on either stream.
func (r result) expect(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.err)
	}
	for _, part := range parts {
		if !strings.Contains(r.out+r.err, part) {
			t.Errorf("%q was not printed:\n%s%s", part, r.out, r.err)
		}
	}
}

// number and sum are the messages of the streams.
type (
	number struct{ N int }
	sum    struct{ Total int }
)

// noted receives the messages sent to Test.Note.
var noted = make(chan string, 10)

// serve starts a server with the methods of the demo's arith and a few that misbehave, and returns
// its address.
func serve(t *testing.T, opts ...anser.ServerOption) string {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{anser.AcceptCompression(all.Compressors()...)}, opts...)...)
	if err := arith.Register(s); err != nil {
		t.Fatal(err)
	}
	anser.Handle(s, "Test.Metadata", func(ctx context.Context, in *anser.None) (*map[string]string, error) {
		md := map[string]string(anser.MetadataFrom(ctx))
		return &md, anser.SetTrailer(ctx, "seen-by", "the server")
	}, anser.Alias("Test.Headers"))
	anser.Handle(s, "Test.Fail", func(context.Context, *anser.None) (*anser.None, error) {
		return nil, anser.Errorf(anser.NotFound, "there is no such thing").WithDetails([]byte("more"))
	})
	anser.HandleOneway(s, "Test.Note", func(_ context.Context, in *struct{ Text string }) error {
		noted <- in.Text
		return nil
	})
	s.RegisterFunc("Test.DivMod", func(_ context.Context, a, b int) (int, int, error) { return a / b, a % b, nil },
		anser.Params("(a, b) (q, r)"))
	over := make(chan struct{})
	anser.Handle(s, "Test.Hang", func(context.Context, *anser.None) (*anser.None, error) {
		<-over // whatever its caller does
		return new(anser.None), nil
	})
	anser.HandleStream(s, "Test.Talk", func(_ context.Context, st *anser.Stream[string, string]) error {
		_, err := st.Recv()
		return err
	})
	anser.HandleStream(s, "Test.Sum", func(ctx context.Context, st *anser.Stream[sum, number]) error {
		total := 0
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			if in.N < 0 {
				anser.SetTrailer(ctx, "total", strconv.Itoa(total))
				return anser.Errorf(anser.InvalidArgument, "%d is below 0", in.N)
			}
			total += in.N
			if err := st.Send(&sum{total}); err != nil {
				return err
			}
		}
		return anser.SetTrailer(ctx, "total", strconv.Itoa(total))
	})
	anser.HandleStream(s, "Test.Ticks", func(ctx context.Context, st *anser.Stream[sum, number]) error {
		if err := st.Send(&sum{1}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	address := listen(t, s)
	t.Cleanup(func() { close(over) })
	return address
}

// listen makes a server serve until the test ends, and returns its address.
func listen(t *testing.T, s *anser.Server) string {
	t.Helper()
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// unused returns an address on which no process listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
