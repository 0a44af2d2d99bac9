package command_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/interceptor/accesslog"
	"github.com/anser-rpc/anser/record"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// hostile are texts that callers, servers, registries and rules may choose.
var hostile = map[string]string{
	"ansi":       "A.\x1b]0;title\x07\x1b[2J\u009b31m",
	"lines":      "A.x\nlevel=ERROR msg=forged\r\n{\"method\":\"forged\"}\n# HELP forged",
	"html":       "A.<script>alert(1)</script><img src=x onerror=alert(2)>\"'&",
	"not UTF-8":  "A.\xff\xfe\xc3(",
	"directions": "A.\u202e\u2066\u200b\ufeff",
	"nul":        "A.\x00\x7f",
	"templates":  "A.{{.}}%s%n${x}\\u0007",
	"long":       "A." + strings.Repeat("漢", 1000),
}

// shown takes what a terminal shows.
func shown(text string) error {
	switch at := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	}); {
	case at >= 0:
		return fmt.Errorf("a terminal gets %q", text[at:min(at+30, len(text))])
	case !utf8.ValidString(text):
		return fmt.Errorf("it is not UTF-8")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "level=ERROR") || strings.HasPrefix(line, `{"method":"forged"`) || strings.HasPrefix(line, "# HELP forged") {
			return fmt.Errorf("a name has begun the line %q", line)
		}
	}
	return nil
}

func isHTML(text string) error {
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
		return fmt.Errorf("it has the markup of a name")
	}
	return shown(strings.ReplaceAll(text, "\t", " "))
}

// isJSON takes one object, or one a line.
func isJSON(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	n := 0
	for ; d.More(); n++ {
		var v any
		if err := d.Decode(&v); err != nil {
			return err
		}
	}
	if n == 0 {
		return fmt.Errorf("it has no JSON")
	}
	return shown(text)
}

// isLog takes a log with one line for each of the three calls.
func isLog(text string) error {
	if n := strings.Count(text, "\n"); n != 3 {
		return fmt.Errorf("%d lines, want 3", n)
	}
	return shown(text)
}

// isJSONLog takes the same in JSON, whose writer is that of package slog: a terminal is not meant
// to show it.
func isJSONLog(text string) error {
	n := 0
	for line := range strings.Lines(text) {
		var v struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Msg != "call" {
			return fmt.Errorf("the line %q: %v", line, err)
		}
		n++
	}
	if n != 3 {
		return fmt.Errorf("%d lines, want 3", n)
	}
	return nil
}

var metricsLine = regexp.MustCompile(`^(# (HELP|TYPE) )?(anser|go|process|promhttp)_[a-z_]+[ {]`)

func isMetrics(text string) error {
	for line := range strings.Lines(text) {
		if !metricsLine.MatchString(line) {
			return fmt.Errorf("the line %q", line)
		}
	}
	if !strings.Contains(text, "anser_client_calls_total") || !utf8.ValidString(text) {
		return fmt.Errorf("it has no calls or is not UTF-8: %.300q", text)
	}
	return nil
}

// No call fails because of a hostile text, and all that shows calls stays well-formed: pages,
// metrics, logs, recordings, and what commands print.
func TestHostileTextsInAllOutputs(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outputsOf(t, text)
		})
	}
}

func outputsOf(t *testing.T, text string) {
	meter := telemetry.New(telemetry.Messages(), telemetry.Slow(time.Nanosecond))
	dir := t.TempDir()
	calls, err := record.New(record.Options{Dir: dir, Share: 1, Metadata: []string{"tenant"}})
	if err != nil {
		t.Fatal(err)
	}
	var logged, loggedJSON bytes.Buffer
	plain, err := accesslog.New(slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := accesslog.New(slog.New(slog.NewJSONHandler(&loggedJSON, nil)), accesslog.Conventions())
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(meter.Option(), calls.Option(), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *string) (*string, error) {
		if *in == "fail" {
			return nil, anser.Errorf(anser.Internal, "%s", text)
		}
		return in, nil
	})
	c, err := anser.Dial(listen(t, s), meter.Option(), anser.Intercept(plain, asJSON), anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := anser.WithMetadata(t.Context(), anser.Metadata{"tenant": strings.Map(func(r rune) rune { // what callers may send
		if r == '\n' || r == '\r' || r == 0 {
			return -1
		}
		return r
	}, text[:min(len(text), 500)])})
	out, err := anser.Call[string](ctx, c, "Echo.Say", &text)
	if utf8.ValidString(text) && (err != nil || *out != text) || !utf8.ValidString(text) && anser.CodeOf(err) != anser.InvalidArgument {
		t.Fatalf("a call with the text: %v", err)
	}
	if _, err := anser.Call[string](t.Context(), c, "Echo.Say", new("fail")); anser.CodeOf(err) != anser.Internal {
		t.Fatalf("got %v", err)
	}
	anser.Call[string](t.Context(), c, text, new("x")) // which the server does not serve
	trace := anser.Trace{TraceID: [16]byte{1: 1}, SpanID: [8]byte{1}, Flags: 1}
	o := meter.Observer()
	for _, server := range []bool{false, true} {
		o.CallEnded(t.Context(), &anser.CallInfo{
			Server: server, Method: text, Target: "etcd://u:pw@h:1/" + text, Address: text, Duration: time.Second, Trace: trace, Attempt: 1,
			Pick: anser.Pick{Reason: balance.PickedByCaller, Balancer: text, Route: text},
			Err:  &anser.Error{Code: anser.Unavailable, Message: text, Attempts: []anser.AttemptInfo{{Address: text, Message: text}}},
		})
	}
	if err := calls.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	page, err := admin.New(meter, admin.Name(text), admin.Handle("metrics", prometheus.Handler(meter)))
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(page)
	defer h.Close()
	defer page.Close()
	at := h.Listener.Addr().String()
	outputs := map[string]func(string) error{"top --once": shown, "top --once --json": isJSON, "tail -n 1": shown, "tail -n 1 --json": isJSON}
	id := hex.EncodeToString(trace.TraceID[:])
	outputs["tail --trace "+id], outputs["tail --json --trace "+id] = shown, isJSON
	stop := calling(o, text)
	defer stop()
	for command, check := range outputs {
		args := append(strings.Fields(command), at)
		if args[0] == "top" {
			args = append(args, "--every", "100ms")
		}
		out, errOut, code := runCommand(t, args...)
		if code != 0 {
			t.Errorf("anser %s: code %d, %s", command, code, errOut)
		}
		if err := check(out); err != nil {
			t.Errorf("anser %s: %v", command, err)
		}
	}
	for command, check := range map[string]func(string) error{"": shown, "--calls": shown, "--json": isJSON, "--calls --json": isJSON} {
		out, errOut, code := runCommand(t, append([]string{"record", dir}, strings.Fields(command)...)...)
		if code != 0 || !strings.Contains(out, "Echo.Say") {
			t.Errorf("anser record %s: code %d\n%s%s", command, code, out, errOut)
		}
		if err := check(out); err != nil {
			t.Errorf("anser record %s: %v", command, err)
		}
	}
	for _, name := range []string{"", "methods", "connections", "streams", "clients", "registries", "failures", "slow", "options", "trace?id=" + id} {
		for kind, check := range map[string]func(string) error{"text/plain": shown, "text/html": isHTML, "application/json": isJSON} {
			if err := check(getAs(t, page, "/"+name, kind)); err != nil {
				t.Errorf("/%s as %s: %v", name, kind, err)
			}
		}
	}
	if err := isJSON(getAs(t, page, "/calls?n=1", "application/x-ndjson")); err != nil {
		t.Errorf("/calls: %v", err)
	}
	if err := isMetrics(getAs(t, page, "/metrics", "text/plain")); err != nil {
		t.Errorf("/metrics: %v", err)
	}
	if err := isLog(logged.String()); err != nil {
		t.Errorf("the access log: %v\n%.500s", err, logged.String())
	}
	if err := isJSONLog(loggedJSON.String()); err != nil {
		t.Errorf("the access log in JSON: %v", err)
	}
}

// calling ends calls of a hostile method until stop is called.
func calling(o anser.Observer, text string) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			o.CallEnded(context.Background(), &anser.CallInfo{Server: true, Method: text, Duration: time.Millisecond, Handle: time.Microsecond})
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// getAs asks a page for one of its forms.
func getAs(t *testing.T, page http.Handler, path, accept string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	if page.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}
