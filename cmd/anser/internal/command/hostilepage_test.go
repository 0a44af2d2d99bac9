package command_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page of another process may send anything: commands that read it neither crash nor print what
// controls a terminal, and what is too large ends with an error.
func TestHostilePages(t *testing.T) {
	text := `"A.\u001b[2J\u0007\u202e\u009b\n<b>"`
	call := func(n any) string {
		return fmt.Sprintf(`{"time":"9999-12-31T23:59:59Z","side":%s,"method":%[1]s,"target":%[1]s,"peer":%[1]s,"identity":%[1]s,"message":%[1]s,`+
			`"trace_id":%[1]s,"span_id":%[1]s,"parent_id":%[1]s,"code":"internal","outcome":"unknown","duration":%[2]v,"queue":%[2]v,"decode":%[2]v,"handle":%[2]v,"encode":%[2]v,`+
			`"request_bytes":%[2]v,"reply_bytes":%[2]v,"attempt":%[2]v,"attempts":[{"Address":%[1]s,"Message":%[1]s,"Duration":%[2]v}]}`, text, n)
	}
	document := func(n any) string {
		return fmt.Sprintf(`{"format":1,"time":"0001-01-01T00:00:00Z","window":%[2]v,"process":{"id":%[1]s,"name":%[1]s,"services":[%[1]s],"cpu":%[2]v,"pid":%[2]v,"goroutines":%[2]v},`+
			`"methods":[{"side":%[1]s,"name":%[1]s,"target":%[1]s,"queue":%[2]v,"codes":[{"code":"internal","times":{"scale":3,"count":18446744073709551615,"sum":%[2]v,"first":%[2]v,"counts":[18446744073709551615,1,18446744073709551615]}}]}],`+
			`"servers":[{"addresses":[%[1]s],"conns":%[2]v,"in_flight":%[2]v,"waiting":%[2]v}],"clients":[{"target":%[1]s}],`+
			`"slow":{"calls":[null,%[3]s]},"failures":{"calls":[%[3]s,%[3]s]},"trace":{"calls":[%[3]s,null,%[3]s]}}`, text, n, call(n))
	}
	endless := strings.Repeat("x", 1<<20)
	for name, page := range map[string]struct {
		document, calls string
		works           bool
	}{
		"largest":  {document(math.MaxInt64), call(math.MaxInt64), true},
		"smallest": {document(math.MinInt64), call(math.MinInt64), true},
		"zero":     {document(0), call(0), true},
		"empty":    {"{}", "", false},
		"null":     {"null", "null\n", false},
		"nested":   {strings.Repeat("[", 1<<20), strings.Repeat("[", 1<<19), false},
		"endless":  {"", "", false},
		"HTML":     {"<html>\x1b[2J", "<html>\x1b[2J", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case name == "endless":
					for { // until the reader has enough
						if _, err := w.Write([]byte(endless)); err != nil {
							return
						}
					}
				case strings.HasSuffix(r.URL.Path, "calls.ndjson"):
					fmt.Fprintln(w, page.calls)
				default:
					fmt.Fprintln(w, page.document)
				}
			}))
			defer s.Close()
			id := strings.Repeat("a1", 16)
			for _, command := range []string{"top --once --every 100ms", "tail -n 1", "tail --trace " + id, "top --once --every 100ms --json", "tail -n 1 --json", "tail --json --trace " + id} {
				out, errOut, code := runCommand(t, append(strings.Fields(command), s.URL)...)
				if (code == 0) != page.works && (name != "empty" && name != "null" || !strings.HasPrefix(command, "tail -n")) {
					t.Errorf("anser %s: code %d\n%.300s%.300s", command, code, out, errOut)
				}
				check := shown
				if code == 0 && strings.Contains(command, "--json") && out != "" {
					check = isJSON
				}
				if err := check(out); err != nil {
					t.Errorf("anser %s: %v", command, err)
				}
				if err := shown(errOut); err != nil || len(errOut) > 10_000 {
					t.Errorf("anser %s: the error has %d bytes, %v", command, len(errOut), err)
				}
			}
		})
	}
}
