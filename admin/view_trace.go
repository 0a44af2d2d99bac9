package admin

import (
	"fmt"
	"net/url"

	"github.com/anser-rpc/anser/telemetry"
)

// isTraceID reports whether a text is the id of a trace.
func isTraceID(text string) bool {
	if len(text) != 32 {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// traceCell is the id of the trace of a call, with a link to its other calls in the process.
func traceCell(c *telemetry.Call) cell {
	if !isTraceID(c.TraceID) {
		return cell{Text: c.TraceID, Class: "trace"}
	}
	return cell{Text: c.TraceID, Link: "trace?id=" + c.TraceID, Class: "trace"}
}

func tracePage(d *Document, q url.Values) []section {
	s := slowSection(d.Trace, d.Time)
	s.Title, s.Empty = "Calls of trace "+q.Get("id"), "The process remembers no call of the trace."
	s.Note = fmt.Sprintf("What this process remembers: failed and slow calls, and those whose trace is recorded. "+
		"\"anser tail --trace %s\" shows the calls of all processes.", q.Get("id"))
	return []section{s}
}
