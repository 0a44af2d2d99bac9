package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/registry"
)

// Call options that are out of range are errors of Dial and of every kind of call, and name the
// allowed range.
func TestCallOptionsOutOfRange(t *testing.T) {
	c := dial(t, "127.0.0.1:1")
	gzip := compress.BuiltIn()[0]
	for want, opt := range map[string]anser.DialCallOption{
		"anser.Attempts(50): want 1 to 5":          anser.Attempts(50),
		"anser.Attempts(0): want 1 to 5":           anser.Attempts(0),
		"anser.Forks(1): want 2 to 5":              anser.Forks(1),
		"anser.Forks(6): want 2 to 5":              anser.Forks(6),
		"anser.BackupAfter(-1s): want at least 0":  anser.BackupAfter(-time.Second),
		"anser.WithFailMode(200): want one":        anser.WithFailMode(200),
		"anser.CompressFrom(-1): want at least 0":  anser.Compress(gzip, anser.CompressFrom(-1)),
		"anser.CompressPrice(-1ns): want at least": anser.Compress(gzip, anser.CompressPrice(-1)),
		"CompressMode(9): want anser.Dynamic (0)":  anser.Compress(gzip, anser.CompressMode(9)),
		"an option of compression is nil":          anser.Compress(gzip, nil),
		"anser.CompressTo: the function is nil":    anser.Compress(gzip, anser.CompressTo(nil)),
		"anser.RetryOn(0): want codes of errors":   anser.RetryOn(anser.Aborted, anser.OK),
		"anser.RetryOn(17): want codes of errors":  anser.RetryOn(17),
		"metadata key of 0 bytes, want 1 to 255":   anser.HashMetadata(""),
		"metadata key of 256 bytes, want 1 to 255": anser.HashMetadata(strings.Repeat("k", 256)),
		`metadata key "a b" has a character`:       anser.HashMetadata("A b"),
		`metadata key "anser-x" is reserved`:       anser.HashMetadata("Anser-X"),
	} {
		if c, err := anser.Dial("127.0.0.1:1", opt); err == nil || !strings.Contains(err.Error(), want) {
			if err == nil {
				c.Close()
			}
			t.Errorf("Dial: %v; want %s", err, want)
		}
		expectMistake(t, c, want, opt)
	}
	expectMistake(t, c, "an option of the call is nil", nil)
	expectMistake(t, c, "anser.Trailer: the pointer is nil", anser.Trailer(nil))
}

// expectMistake makes every kind of call with the option.
func expectMistake(t *testing.T, c *anser.Client, want string, opt anser.CallOption) {
	t.Helper()
	ctx, in := context.Background(), new(Args)
	var bound func(ctx context.Context, a, b int) (int, error)
	if err := anser.Bind(c, "Arith.Mul", &bound, opt); err != nil {
		t.Fatal(err)
	}
	_, called := anser.Call[Reply](ctx, c, "Arith.Mul", in, opt)
	_, went := anser.Go[Reply](ctx, c, "Arith.Mul", in, opt).Wait()
	_, opened := anser.Open[Args, Reply](ctx, c, "Arith.Mul", opt)
	_, tuple := bound(ctx, 1, 2)
	for way, err := range map[string]error{"Call": called, "Go": went, "Open": opened, "Bind": tuple, "Send": anser.Send(ctx, c, "Arith.Mul", in, opt)} {
		if !errors.Is(err, anser.InvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", way, err, want)
		}
	}
}

// Other options that are out of range are errors of Dial, of Serve, or of adding a method.
func TestOptionsOutOfRange(t *testing.T) {
	for want, opt := range map[string]anser.DialOption{
		"anser.RetryBudget(NaN, 1): want numbers of at least 0": anser.RetryBudget(math.NaN(), 1),
		"anser.RetryBudget(+Inf, 1): want":                      anser.RetryBudget(math.Inf(1), 1),
		"anser.SnapshotDir: the directory is empty":             anser.SnapshotDir(""),
		"an option of Dial is nil":                              nil,
		`registry.Scheme "mem" is not complete: it needs`:       registry.Scheme{Name: "mem"},
		`the transport "x" has -1 Conns: want at least 0`:       anser.Transport{Scheme: "x", Conns: -1},
	} {
		if strings.Contains(want, "Conns") {
			tr := opt.(anser.Transport)
			tr.Dial = func(context.Context, string, *tls.Config) (net.Conn, error) { return nil, nil }
			opt = tr
		}
		if c, err := anser.Dial("127.0.0.1:1", opt); err == nil || !strings.Contains(err.Error(), want) {
			if err == nil {
				c.Close()
			}
			t.Errorf("%v; want %s", err, want)
		}
	}
	for want, opt := range map[string]anser.ServerOption{
		"anser.Announce: the registrar is nil":                   anser.Announce(nil, registry.Instance{Service: "x"}),
		"anser.CompressReplies: anser.CompressFrom(-1): want at": anser.CompressReplies(anser.CompressFrom(-1)),
		"anser.CompressCalls: anser.CompressFrom(-1): want at":   anser.CompressCalls(compress.Gzip(), anser.CompressFrom(-1)),
		"an option of the server is nil":                         nil,
	} {
		if err := anser.NewServer(opt, silent).ListenAndServe("127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if err := add[Args](anser.OnlyCodecs(nil)); err == nil || !strings.Contains(err.Error(), "anser.OnlyCodecs: a codec is nil") {
		t.Error(err)
	}
}
