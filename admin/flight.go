package admin

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/trace"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/telemetry"
)

// flightOptions are the arguments of FlightRecorder.
type flightOptions struct {
	slower time.Duration // 0: no recorder
	every  time.Duration
}

const (
	flightAge   = 5 * time.Second // of the events in a recording
	flightBytes = 8 << 20         // of a recording, about
	maxFlight   = 32 << 20        // a larger recording is dropped
	keptFlights = 4
)

// FlightRecorder keeps a trace of the last seconds of the process with [trace.FlightRecorder], and
// saves it when a call that is not a stream takes at least slower, at most once per the time every.
// The last four recordings, of about 8 MiB each, can be downloaded from the page for "go tool
// trace"; they are kept in memory. Recording costs a few percent of the processor. A process has
// one recorder at a time.
func FlightRecorder(slower, every time.Duration) Option {
	return func(o *options) error {
		if slower <= 0 || every < time.Second {
			return fmt.Errorf("admin.FlightRecorder(%v, %v): want a bound above 0, and at least 1s between two recordings", slower, every)
		}
		o.flight = flightOptions{slower, every}
		return nil
	}
}

// flight is a running recorder.
type flight struct {
	recorder *trace.FlightRecorder
	o        flightOptions
	wg       sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	kept    []*recording
	made    int // recordings so far
	skipped int // slow calls for which none was made
}

// recording is a saved trace, and the call for which it was made.
type recording struct {
	number int
	time   time.Time
	call   *telemetry.Call
	data   []byte
}

func startFlight(m *telemetry.Meter, o flightOptions, log *slog.Logger, closed <-chan struct{}) (*flight, error) {
	f := &flight{o: o, recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightAge, MaxBytes: flightBytes})}
	tap, err := m.Tap(telemetry.Filter{Slower: o.slower}, 16)
	if err != nil {
		return nil, fmt.Errorf("admin.FlightRecorder: %w", err)
	}
	if err := f.recorder.Start(); err != nil {
		m.Untap(tap)
		return nil, fmt.Errorf("admin.FlightRecorder: %w", err)
	}
	f.wg.Go(func() {
		defer f.recorder.Stop()
		defer m.Untap(tap)
		var last time.Time
		for {
			select {
			case c := <-tap.Calls:
				if c.Stream {
					continue
				}
				if !last.IsZero() && time.Since(last) < o.every {
					f.mu.Lock()
					f.skipped++
					f.mu.Unlock()
					continue
				}
				last = time.Now()
				if err := f.save(c); err != nil {
					log.Warn("the flight recorder could not save a recording", "err", err)
				}
			case <-closed:
				return
			}
		}
	})
	return f, nil
}

// save keeps what the recorder has.
func (f *flight) save(c *telemetry.Call) error {
	data, err := f.snapshot()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	f.kept = append(f.kept, &recording{f.made, time.Now(), c, data})
	if len(f.kept) > keptFlights {
		f.kept = f.kept[1:]
	}
	return nil
}

var errLargeFlight = errors.New("the recording is larger than 32 MiB")

func (f *flight) snapshot() ([]byte, error) {
	var b limitedBuffer
	if _, err := f.recorder.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// limitedBuffer takes up to maxFlight bytes.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxFlight {
		return 0, errLargeFlight
	}
	return b.Buffer.Write(p)
}

// serveFlight lists the recordings, and serves one.
func (p *Page) serveFlight(w http.ResponseWriter, r *http.Request, name string) {
	f := p.flight
	if f == nil {
		http.Error(w, "404 the page has no flight recorder: see admin.FlightRecorder", http.StatusNotFound)
		return
	}
	if name == "" {
		if formOf(r) == "html" {
			p.view(&flightPage, p.document(0, bounds{}), []section{f.section()}).serveHTML(w)
			return
		}
		f.serveList(w)
		return
	}
	data, err := f.find(name)
	switch {
	case err != nil:
		http.Error(w, "503 "+err.Error(), http.StatusServiceUnavailable)
	case data == nil:
		http.Error(w, "404 there is no such recording: flight/ lists them", http.StatusNotFound)
	default:
		download(w, "flight-"+name)
		w.Write(data)
	}
}

// find returns the recording with a name such as "3.trace", what the recorder has now for
// "now.trace", or nil.
func (f *flight) find(name string) ([]byte, error) {
	text, ok := strings.CutSuffix(name, ".trace")
	if !ok {
		return nil, nil
	}
	if text == "now" {
		return f.snapshot()
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, nil //nits:ignore nilerr it is the name of no recording
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.kept {
		if k.number == n {
			return k.data, nil
		}
	}
	return nil, nil
}

// flightPage is the list of recordings in a browser.
var flightPage = page{path: "flight/", title: "Flight recorder"}

func (f *flight) section() section {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := section{
		Title:   "Recordings for go tool trace",
		Note:    fmt.Sprintf("Of the %v before a call took %v or more; at most one per %v. %d were made, and %d slow calls had none.", flightAge, f.o.slower, f.o.every, f.made, f.skipped),
		Columns: columns("Recording", "Made", ">Size", "Method", "Side", ">Duration"),
		Rows:    [][]cell{{{Text: "what is recorded now", Link: "now.trace"}, plain(""), plain(""), plain(""), plain(""), plain("")}},
	}
	for i := len(f.kept) - 1; i >= 0; i-- {
		k := f.kept[i]
		name := strconv.Itoa(k.number) + ".trace"
		s.Rows = append(s.Rows, []cell{
			{Text: name, Link: name}, plain(k.time.Format(time.DateTime)), plain(size(float64(len(k.data)))), plain(k.call.Method), plain(k.call.Side), plain(span(k.call.Duration)),
		})
	}
	return s
}

func (f *flight) serveList(w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "Recordings of the %v before a call took %v or more, for \"go tool trace\"; at most one per %v.\n", flightAge, f.o.slower, f.o.every)
	fmt.Fprintf(w, "%d were made, and %d slow calls had none.\n\n", f.made, f.skipped)
	fmt.Fprintln(w, "flight/now.trace  what is recorded now")
	for i := len(f.kept) - 1; i >= 0; i-- {
		k := f.kept[i]
		fmt.Fprintf(w, "flight/%d.trace  %s  %s  %s on the %s took %s\n", k.number, k.time.Format(time.RFC3339), size(float64(len(k.data))), printable.Text(k.call.Method), k.call.Side, span(k.call.Duration))
	}
}
