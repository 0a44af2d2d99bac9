package measure

import (
	"errors"
	"math"
	"reflect"
	"runtime"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/anser-rpc/anser/arena/internal/proc"
	"github.com/anser-rpc/anser/arena/result"
)

// figures turns what the clients and the sampler say into the figures of a round. Trees are those
// of the servers, then those of the clients.
func figures(j *Job, lines []*line, record *proc.Record) (result.Figures, float64, error) {
	var f result.Figures
	all := hdrhistogram.New(1, 60e9, 3)
	from, to := lines[0].Began, lines[0].Ended
	for _, l := range lines {
		f.Calls += l.Calls
		f.Errors += l.Errors
		f.Wrong += l.Wrong
		f.CallsPerSecond += float64(l.Calls) / l.seconds()
		if dropped := all.Merge(l.histogram); dropped > 0 {
			return f, 0, failed("the client's histogram has %d values beyond 60 s", dropped)
		}
		from, to = max(from, l.Began), min(to, l.Ended)
	}
	if from >= to {
		return f, 0, failed("the clients did not measure at the same time: their warm-up is too short for how differently they start")
	}
	if n := f.Calls + f.Errors + f.Wrong; n > 0 {
		f.SuccessRate = float64(f.Calls) / float64(n)
	}
	latencies(&f, all)
	w := window{from: from, to: to, record: record, servers: j.Shape.Servers}
	// The calls of the time that all clients measured in. Of one client, these are its calls.
	w.calls = f.CallsPerSecond * w.seconds()
	if err := w.cpu(&f); err != nil {
		return f, 0, err
	}
	w.memory(&f)
	w.calledIO(&f, leastBytes(j))
	if sent, ok := record.Wire.Between(from, to); ok && w.calls > 0 {
		f.WireBytes = new(sent / w.calls)
	}
	tidy(&f)
	return f, math.Round(1e4*w.others()) / 1e4, nil
}

// tidy keeps three digits after the point: what follows is noise, and makes documents long.
func tidy(f *result.Figures) {
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() == reflect.Pointer && !field.IsNil() {
			field = field.Elem()
		}
		if field.Kind() == reflect.Float64 {
			field.SetFloat(math.Round(1e3*field.Float()) / 1e3)
		}
	}
}

func latencies(f *result.Figures, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		return
	}
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	f.MeanUS = h.Mean() / 1e3
	f.MinUS, f.MaxUS = us(h.Min()), us(h.Max())
	f.P50US, f.P90US = us(h.ValueAtQuantile(50)), us(h.ValueAtQuantile(90))
	f.P99US, f.P999US = us(h.ValueAtQuantile(99)), us(h.ValueAtQuantile(99.9))
}

// window is the time in which all clients measured.
type window struct {
	from, to int64 // nanoseconds since 1970
	record   *proc.Record
	servers  int // number of trees that are servers; the others are clients
	calls    float64
}

func (w *window) seconds() float64 { return float64(w.to-w.from) / 1e9 }

func (w *window) sides() (server, client []*proc.Tree) {
	return w.record.Trees[:w.servers], w.record.Trees[w.servers:]
}

// grown sums how much a counter of trees grew.
func (w *window) grown(trees []*proc.Tree, counter func(*proc.Tree) *proc.Series) (float64, bool) {
	sum, known := 0.0, true
	for _, t := range trees {
		n, ok := counter(t).Between(w.from, w.to)
		sum, known = sum+n, known && ok
	}
	return sum, known
}

func cpuOf(t *proc.Tree) *proc.Series { return &t.CPU }

func (w *window) cpu(f *result.Figures) error {
	servers, clients := w.sides()
	server, ok1 := w.grown(servers, cpuOf)
	client, ok2 := w.grown(clients, cpuOf)
	if !ok1 || !ok2 {
		return errors.New("the samples of /proc do not cover the client's measurement: is its clock another one?")
	}
	if w.calls > 0 {
		f.ServerCPUUS, f.ClientCPUUS = server/1e3/w.calls, client/1e3/w.calls
		f.CPUUS = f.ServerCPUUS + f.ClientCPUUS
	}
	return nil
}

func (w *window) memory(f *result.Figures) {
	most := func(trees []*proc.Tree) (sum float64) {
		for _, t := range trees {
			sum += t.Resident.Max(w.from, w.to)
		}
		return sum / (1 << 20)
	}
	servers, clients := w.sides()
	f.ServerMiB, f.ClientMiB = most(servers), most(clients)
}

// others returns the share of the machine's CPU time that went to processes which have nothing to
// do with the measurement.
func (w *window) others() float64 {
	own, ok1 := w.grown(w.record.Trees, cpuOf)
	self, ok2 := w.record.Self.Between(w.from, w.to)
	busy, ok3 := w.record.Busy.Between(w.from, w.to)
	if !ok1 || !ok2 || !ok3 {
		return 0
	}
	return max(busy-own-self, 0) / (float64(runtime.NumCPU()) * float64(w.to-w.from))
}

// leastBytes is what each call moves in each direction at the least, whatever the encoding: a
// third of the payload, and for add a method and two numbers.
func leastBytes(j *Job) float64 { return max(float64(j.Shape.Payload)/3, 4) }

// eventBytes is more than what a write to an eventfd or a pipe moves, by which threads wake each
// other.
const eventBytes = 12

// calledIO sets the system calls of the kinds read and write. /proc does not count sendmsg,
// recvmsg and their kin: where the bytes that were read or written are too few to be those of the
// calls, sockets are used through these, and the figure is not known.
func (w *window) calledIO(f *result.Figures, least float64) {
	if w.calls == 0 {
		return
	}
	kind := func(trees []*proc.Tree, calls, bytes func(*proc.Tree) *proc.Series) *float64 {
		n, ok1 := w.grown(trees, calls)
		sum, ok2 := w.grown(trees, bytes)
		if !ok1 || !ok2 || n == 0 || sum/w.calls < least || sum/n < eventBytes {
			return nil
		}
		return new(n / w.calls)
	}
	reads := func(t *proc.Tree) *proc.Series { return &t.Reads }
	readSum := func(t *proc.Tree) *proc.Series { return &t.ReadSum }
	writes := func(t *proc.Tree) *proc.Series { return &t.Writes }
	writeSum := func(t *proc.Tree) *proc.Series { return &t.WriteSum }
	servers, clients := w.sides()
	f.ServerReads, f.ServerWrites = kind(servers, reads, readSum), kind(servers, writes, writeSum)
	f.ClientReads, f.ClientWrites = kind(clients, reads, readSum), kind(clients, writes, writeSum)
}
