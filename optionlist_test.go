package anser_test

import (
	"cmp"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// tooWide is 1 more than the largest window, or negative where an int has 32 bits.
var (
	widest  uint32 = wire.MaxWindow
	tooWide        = int(widest + 1)
)

// outOfRange has, for each function of the package that returns an option, options that it makes
// out of its range.
var outOfRange = map[string][]any{
	"AcceptCompression":  {anser.AcceptCompression(nil), anser.AcceptCompression(compress.None())},
	"AdaptiveLimit":      {anser.AdaptiveLimit(-1, 0), anser.AdaptiveLimit(2, 1)},
	"Alias":              {anser.Alias("")},
	"AllowFrom":          {anser.AllowFrom()},
	"Announce":           {anser.Announce(nil, registry.Instance{Service: "x"})},
	"Attempts":           {anser.Attempts(0), anser.Attempts(6)},
	"Authenticate":       {anser.Authenticate(nil)},
	"Authorize":          {anser.Authorize(nil)},
	"BackupAfter":        {anser.BackupAfter(-1)},
	"BackupShare":        {anser.BackupShare(-1), anser.BackupShare(1.1)},
	"Balancer":           {anser.Balancer(nil)},
	"Codecs":             {anser.Codecs(nil), anser.Codecs(unnumbered{})},
	"Compress":           {anser.Compress(compress.Gzip(), nil)},
	"CompressCalls":      {anser.CompressCalls(compress.Gzip(), nil)},
	"CompressFrom":       {anser.Compress(compress.Gzip(), anser.CompressFrom(-1))},
	"CompressPrice":      {anser.Compress(compress.Gzip(), anser.CompressPrice(-1))},
	"CompressReplies":    {anser.CompressReplies(nil)},
	"CompressTo":         {anser.Compress(compress.Gzip(), anser.CompressTo(nil))},
	"ConnectTimeout":     {anser.ConnectTimeout(0)},
	"Conns":              {anser.Conns(0)},
	"Contract":           {anser.Contract(nil)},
	"Credentials":        {anser.Credentials(nil)},
	"DenyFrom":           {anser.DenyFrom()},
	"DeprecatedAlias":    {anser.DeprecatedAlias("")},
	"DialOptionsOf":      {anser.DialOptionsOf("x", nil)},
	"Dialer":             {anser.Dialer(nil)},
	"DrainGrace":         {anser.DrainGrace(-1)},
	"FailbackQueue":      {anser.FailbackQueue(anser.FailbackLimits{Calls: -1})},
	"FlowControlWindows": {anser.FlowControlWindows(4095, 1<<20), anser.FlowControlWindows(4096, tooWide)},
	"Forks":              {anser.Forks(1), anser.Forks(6)},
	"Forward":            {anser.Forward(nil)},
	"HandshakeTimeout":   {anser.HandshakeTimeout(0)},
	"Handlers":           {anser.Handlers(nil)},
	"HashMetadata":       {anser.HashMetadata("")},
	"IdempotencyKey":     {anser.IdempotencyKey(""), anser.IdempotencyKey("a b")},
	"IdleTimeout":        {anser.IdleTimeout(-1)},
	"Intercept":          {anser.Intercept(nil)},
	"Keepalive":          {anser.Keepalive(0, 1), anser.Keepalive(1, 0)},
	"Logger":             {anser.Logger(nil)},
	"MaxCalls":           {anser.MaxCalls(0)},
	"MaxConns":           {anser.MaxConns(0)},
	"MaxExpansion":       {anser.MaxExpansion(0)},
	"MaxHandshakes":      {anser.MaxHandshakes(0)},
	"MaxInFlight":        {anser.MaxInFlight(0)},
	"MaxMemory":          {anser.MaxMemory(0)},
	"MaxMessage":         {anser.MaxMessage(0), anser.MaxMessage(tooWide)},
	"MaxQueueTime":       {anser.MaxQueueTime(0)},
	"MaxStreams":         {anser.MaxStreams(-1)},
	"MinPing":            {anser.MinPing(-1)},
	"OnSession":          {anser.OnSession(nil)},
	"OnlyCodecs":         {anser.OnlyCodecs(nil)},
	"Params":             {anser.Params("(a")},
	"Protocols":          {anser.Protocols(nil)},
	"ReadTimeout":        {anser.ReadTimeout(-1)},
	"ReplyCache":         {anser.ReplyCache(anser.ReplyCacheLimits{Bytes: 1}), anser.ReplyCache(anser.ReplyCacheLimits{Age: -1})},
	"RetryBudget":        {anser.RetryBudget(-1, 0), anser.RetryBudget(0, -1)},
	"RetryOn":            {anser.RetryOn(anser.OK), anser.RetryOn(200)},
	"Sampled":            {anser.Sampled(nil, nil)},
	"ServerOptionsOf":    {anser.ServerOptionsOf("x", nil)},
	"SessionGrace":       {anser.SessionGrace(-1)},
	"SlowStart":          {anser.SlowStart(-1)},
	"SnapshotDir":        {anser.SnapshotDir("")},
	"Subset":             {anser.Subset(10, 1), anser.Subset(1, 2)},
	"TLS":                {anser.TLS(nil)},
	"Trailer":            {anser.Trailer(nil)},
	"WithFailMode":       {anser.WithFailMode(200)},
	"WithRouter":         {anser.WithRouter(nil)},
	"WriteStall":         {anser.WriteStall(0)},
}

// inOtherWords has the errors that do not name the option, as other functions return them too.
var inOtherWords = map[string]string{
	"Alias":           "method name of 0 bytes",
	"DeprecatedAlias": "method name of 0 bytes",
	"IdempotencyKey":  "idempotency key",
}

// anyValue lists the functions whose options have a meaning with every argument.
var anyValue = map[string]string{
	"At":          "a key that no instance has is an error of the call",
	"Codec":       "nil is the default",
	"HashBy":      "nil disables the client's function",
	"HashKey":     "an empty key is none",
	"Observe":     "an observer without functions observes nothing",
	"StreamSides": "each pair is a kind of stream",
	"Timeout":     "0 is no limit, and a negative time times out at once",
}

// Every option with an argument has values that are refused, or a reason why it takes any value.
func TestEveryOptionHasItsRange(t *testing.T) {
	functions := make(map[string]bool)
	for _, name := range optionFunctions(t) {
		functions[name] = true
		_, free := anyValue[name]
		if ranged := len(outOfRange[name]) > 0; ranged == free {
			t.Errorf("anser.%s: want it in outOfRange with options that must be refused, or in anyValue", name)
		}
	}
	c := dial(t, "127.0.0.1:1")
	for name, options := range outOfRange {
		if !functions[name] {
			t.Errorf("anser.%s is no function that returns an option", name)
		}
		want := cmp.Or(inOtherWords[name], "anser."+name)
		for i, opt := range options {
			for way, err := range errorsOf(t, c, opt) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, option %d of anser.%s: %v; want an error with %q", way, i, name, err, want)
				}
			}
		}
	}
	for name := range anyValue {
		if !functions[name] {
			t.Errorf("anser.%s is no function that returns an option", name)
		}
	}
}

// errorsOf gives an option to all that take it.
func errorsOf(t *testing.T, c *anser.Client, opt any) map[string]error {
	t.Helper()
	got := make(map[string]error)
	if opt, ok := opt.(anser.DialOption); ok {
		c, err := anser.Dial("127.0.0.1:1", silent, opt)
		if err == nil {
			c.Close()
		}
		got["Dial"] = err
	}
	if opt, ok := opt.(anser.CallOption); ok {
		_, got["Call"] = anser.Call[Reply](context.Background(), c, "Arith.Mul", new(Args), opt)
	}
	if opt, ok := opt.(anser.ServerOption); ok {
		l := new(ansertest.Network).Listen("a:1")
		l.Close() // Serve returns even if the option is accepted
		got["Serve"] = anser.NewServer(silent, opt).Serve(l)
	}
	if opt, ok := opt.(anser.HandleOption); ok {
		got["Handle"] = add[Args](opt)
	}
	return got
}

// optionFunctions returns the exported functions of the package that have arguments and return an
// option.
func optionFunctions(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || d.Recv != nil || !d.Name.IsExported() || d.Type.Results == nil || d.Type.Params.NumFields() == 0 {
				continue
			}
			result, ok := d.Type.Results.List[0].Type.(*ast.Ident)
			if ok && strings.HasSuffix(result.Name, "Option") {
				names = append(names, d.Name.Name)
			}
		}
	}
	return names
}
