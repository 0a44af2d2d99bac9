package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	tapRoom     = 256              // calls that wait for a viewer
	maxName     = 1024             // bytes of the name of a method
	defaultRate = 50               // calls a second that a viewer gets
	maxRate     = 10_000           //
	maxFollow   = time.Hour        // a viewer asks again after that
	tellEvery   = time.Second      // how often a viewer learns what was left out
	writeBound  = 10 * time.Second // for a viewer that does not read
)

// follow is what a viewer of live calls asks for.
type follow struct {
	filter telemetry.Filter
	bound  time.Duration // after which the list ends
	count  int           // of calls after which the list ends; 0: any number
}

func parseFollow(q url.Values) (f follow, err error) {
	f = follow{bound: maxFollow}
	f.filter.PerSecond = defaultRate
	f.filter.Method, f.filter.Side, f.filter.Trace = q.Get("method"), q.Get("side"), q.Get("trace")
	if len(f.filter.Method) > maxName {
		return f, fmt.Errorf("method has %d bytes: want at most %d", len(f.filter.Method), maxName)
	}
	if f.filter.Trace != "" && !isTraceID(f.filter.Trace) {
		return f, fmt.Errorf("trace=%.40q: want 32 digits of hexadecimal", f.filter.Trace)
	}
	if s := f.filter.Side; s != "" && s != "server" && s != "client" {
		return f, fmt.Errorf("side=%.40q: want server or client", s)
	}
	if text := q.Get("failed"); text != "" {
		if f.filter.Failed, err = strconv.ParseBool(text); err != nil {
			return f, fmt.Errorf("failed=%.40q: want true or false", text)
		}
	}
	if text := q.Get("slower"); text != "" {
		if f.filter.Slower, err = time.ParseDuration(text); err != nil || f.filter.Slower < 0 {
			return f, fmt.Errorf("slower=%.40q: want a duration such as 10ms", text)
		}
	}
	if text := q.Get("sampled"); text != "" {
		if f.filter.Sampled, err = strconv.ParseFloat(text, 64); err != nil || !(f.filter.Sampled > 0 && f.filter.Sampled <= 1) {
			return f, fmt.Errorf("sampled=%.40q: want a fraction above 0 and up to 1", text)
		}
	}
	if text := q.Get("rate"); text != "" {
		if f.filter.PerSecond, err = strconv.Atoi(text); err != nil || f.filter.PerSecond < 1 || f.filter.PerSecond > maxRate {
			return f, fmt.Errorf("rate=%.40q: want calls per second from 1 to %d", text, maxRate)
		}
	}
	if text := q.Get("for"); text != "" {
		if f.bound, err = time.ParseDuration(text); err != nil || f.bound <= 0 || f.bound > maxFollow {
			return f, fmt.Errorf("for=%.40q: want a duration up to %v", text, maxFollow)
		}
	}
	if text := q.Get("n"); text != "" {
		if f.count, err = strconv.Atoi(text); err != nil || f.count < 1 {
			return f, fmt.Errorf("n=%.40q: want a number of calls of at least 1", text)
		}
	}
	return f, nil
}

// serveCalls sends calls as they happen: as server-sent events, or one object of JSON a line.
func (p *Page) serveCalls(w http.ResponseWriter, r *http.Request, form string) {
	switch form {
	case "html":
		serveTemplate(w, "calls.html", &callsView{p.self.Name, navigation{"./", "calls", p.links()}})
		return
	case "events", "ndjson", "txt", "json":
	default:
		http.Error(w, fmt.Sprintf("404 live calls have no form %.40q: use .events or .ndjson", form), http.StatusNotFound)
		return
	}
	f, err := parseFollow(r.URL.Query())
	if err != nil {
		http.Error(w, "400 "+err.Error(), http.StatusBadRequest)
		return
	}
	tap, err := p.meter.Tap(f.filter, tapRoom)
	if err != nil {
		http.Error(w, "503 "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer p.meter.Untap(tap)
	kind := "application/x-ndjson"
	if form == "events" {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	l := &liveList{w: w, control: http.NewResponseController(w), events: form == "events"}
	l.flush()
	p.follow(r, l, tap, f)
}

// callsView is the data of the page of live calls.
type callsView struct {
	Name string
	Nav  navigation
}

// follow sends calls until the viewer leaves or the list ends.
func (p *Page) follow(r *http.Request, l *liveList, tap *telemetry.Tap, f follow) {
	end := time.NewTimer(f.bound)
	defer end.Stop()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	total, told := 0, uint64(0)
	for {
		select {
		case c := <-tap.Calls:
			total++
			if !l.send("call", cleanCall(c)) {
				return
			}
			if len(tap.Calls) == 0 && !l.flush() {
				return
			}
			if total == f.count {
				l.send("end", map[string]string{"why": "The list has as many calls as asked for."})
				l.flush()
				return
			}
		case <-tick.C:
			if now := tap.Dropped(); now != told {
				told = now
				if !l.send("skipped", map[string]uint64{"skipped": now}) {
					return
				}
			} else if !l.alive() {
				return
			}
			if !l.flush() {
				return
			}
		case <-end.C:
			l.send("end", map[string]string{"why": "The list has ended after " + f.bound.String() + "."})
			l.flush()
			return
		case <-p.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// liveList writes events to a viewer.
type liveList struct {
	w       http.ResponseWriter
	control *http.ResponseController
	events  bool
}

// send writes an event. Without server-sent events, calls are lines, and other events are lines
// with one member.
func (l *liveList) send(event string, v any) bool {
	text, err := json.Marshal(v)
	if err != nil {
		return false
	}
	text = printable.JSON(text) // curl shows it on a terminal
	l.bound()
	if l.events {
		_, err = fmt.Fprintf(l.w, "event: %s\ndata: %s\n\n", event, text)
	} else if event != "end" {
		_, err = fmt.Fprintf(l.w, "%s\n", text)
	}
	return err == nil
}

// alive writes a comment, so that a viewer that has left is noticed.
func (l *liveList) alive() bool {
	if !l.events {
		return true
	}
	l.bound()
	_, err := fmt.Fprint(l.w, ":\n\n")
	return err == nil
}

func (l *liveList) flush() bool {
	l.bound()
	return l.control.Flush() == nil
}

// bound limits how long a write may take. Not every transport can: then its own limits apply.
func (l *liveList) bound() { l.control.SetWriteDeadline(time.Now().Add(writeBound)) }
