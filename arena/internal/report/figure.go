package report

import (
	"math"
	"slices"

	"github.com/anser-rpc/anser/arena/result"
)

// figure is a column: one thing that is measured.
type figure struct {
	Key    string `json:"key"` // in an address: sort=cpu
	Group  string `json:"group"`
	Title  string `json:"title"`
	Name   string `json:"name"` // if it is shown alone, with its unit
	About  string `json:"about"`
	Digits int    `json:"digits"`
	Better int    `json:"better"` // 1: more is, -1: less is, 0: neither
	// Speed says that a row with wrong replies has no such figure: a wrong answer is not fast.
	Speed bool `json:"-"`
	// Span says that the page has the least and the most of the rounds too.
	Span bool `json:"-"`

	of    func(f *result.Figures) float64 // NaN: not known
	ofRow func(r *result.Row) float64     // instead of of, where it is not one of Figures
	given func(r *result.Row) [2]float64  // the range that the document has, or nil
}

// positive makes a zero unknown: nothing takes no time, and what could not be read is 0 there.
func positive(v float64) float64 {
	if known(v) {
		return v
	}
	return math.NaN()
}

func optional(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// figures are all columns of the page's table, in its order.
var figures = []figure{
	{
		Key: "throughput", Group: "Throughput", Title: "calls/s", Name: "calls/s", Better: 1, Speed: true, Span: true,
		About: "Right replies per second of all callers together.",
		of:    func(f *result.Figures) float64 { return positive(f.CallsPerSecond) },
		given: func(r *result.Row) [2]float64 { return r.CallsPerSecondRange },
	},
	{
		Key: "cpu", Group: "CPU, µs a call", Title: "both", Name: "CPU µs a call", Digits: 1, Better: -1, Speed: true, Span: true,
		About: "CPU time of client and server, user and system, divided by the calls.",
		of:    func(f *result.Figures) float64 { return positive(f.CPUUS) },
		given: func(r *result.Row) [2]float64 { return r.CPURange },
	},
	{
		Key: "client-cpu", Group: "CPU, µs a call", Title: "client", Name: "client CPU µs a call", Digits: 1, Better: -1, Speed: true,
		About: "CPU time of the client processes, divided by the calls.",
		of:    func(f *result.Figures) float64 { return positive(f.ClientCPUUS) },
	},
	{
		Key: "server-cpu", Group: "CPU, µs a call", Title: "server", Name: "server CPU µs a call", Digits: 1, Better: -1, Speed: true,
		About: "CPU time of the server processes, divided by the calls.",
		of:    func(f *result.Figures) float64 { return positive(f.ServerCPUUS) },
	},
	latency("mean", "mean", "The mean latency.", func(f *result.Figures) float64 { return f.MeanUS }, nil),
	latency("min", "min", "The least latency.", func(f *result.Figures) float64 { return f.MinUS }, nil),
	latency("p50", "p50", "Half of the calls were as fast as this or faster.", func(f *result.Figures) float64 { return f.P50US },
		func(r *result.Row) [2]float64 { return r.P50Range }),
	latency("p90", "p90", "90 % of the calls were as fast as this or faster.", func(f *result.Figures) float64 { return f.P90US }, nil),
	latency("p99", "p99", "99 % of the calls were as fast as this or faster.", func(f *result.Figures) float64 { return f.P99US },
		func(r *result.Row) [2]float64 { return r.P99Range }),
	latency("p99.9", "p99.9", "99.9 % of the calls were as fast as this or faster.", func(f *result.Figures) float64 { return f.P999US }, nil),
	latency("max", "max", "The slowest call.", func(f *result.Figures) float64 { return f.MaxUS }, nil),
	{
		Key: "memory", Group: "Memory, MiB", Title: "both", Name: "memory MiB", Digits: 0, Better: -1, Speed: true, Span: true,
		About: "Resident memory of client and server, the most of each.",
		of: func(f *result.Figures) float64 {
			if !known(f.ClientMiB) || !known(f.ServerMiB) {
				return math.NaN()
			}
			return f.ClientMiB + f.ServerMiB
		},
	},
	{
		Key: "client-memory", Group: "Memory, MiB", Title: "client", Name: "client memory MiB", Better: -1, Speed: true,
		About: "Resident memory of the client processes, the most.",
		of:    func(f *result.Figures) float64 { return positive(f.ClientMiB) },
	},
	{
		Key: "server-memory", Group: "Memory, MiB", Title: "server", Name: "server memory MiB", Better: -1, Speed: true,
		About: "Resident memory of the server processes, the most.",
		of:    func(f *result.Figures) float64 { return positive(f.ServerMiB) },
	},
	{
		Key: "wire", Group: "Wire", Title: "bytes/call", Name: "wire bytes a call", Better: -1, Speed: true,
		About: "Bytes on the wire for a call in both directions, with the headers of TCP and IP.",
		of:    func(f *result.Figures) float64 { return optional(f.WireBytes) },
	},
	system("client-reads", "client reads", "Read calls of the client.", func(f *result.Figures) *float64 { return f.ClientReads }),
	system("client-writes", "client writes", "Write calls of the client.", func(f *result.Figures) *float64 { return f.ClientWrites }),
	system("client-syscalls", "client all", "System calls of every kind of the client.", func(f *result.Figures) *float64 { return f.ClientSyscalls }),
	system("server-reads", "server reads", "Read calls of the server.", func(f *result.Figures) *float64 { return f.ServerReads }),
	system("server-writes", "server writes", "Write calls of the server.", func(f *result.Figures) *float64 { return f.ServerWrites }),
	system("server-syscalls", "server all", "System calls of every kind of the server.", func(f *result.Figures) *float64 { return f.ServerSyscalls }),
	{
		Key: "calls", Group: "Outcome", Title: "calls", Name: "calls", About: "Right replies in the median round.",
		of: func(f *result.Figures) float64 { return float64(f.Calls) },
	},
	{
		Key: "errors", Group: "Outcome", Title: "errors", Name: "errors", Better: -1, About: "Calls that failed.",
		of: func(f *result.Figures) float64 { return float64(f.Errors) },
	},
	{
		Key: "wrong", Group: "Outcome", Title: "wrong", Name: "wrong replies", Better: -1, About: "Replies that were not the right ones.",
		of: func(f *result.Figures) float64 { return float64(f.Wrong) },
	},
	{
		Key: "success", Group: "Outcome", Title: "success %", Name: "success %", Digits: 2, Better: 1, About: "The share of the calls with a right reply.",
		of: func(f *result.Figures) float64 { return 100 * f.SuccessRate },
	},
	{
		Key: "rounds", Group: "Rounds", Title: "rounds", Name: "rounds", About: "Measurements that the medians are of.",
		ofRow: func(r *result.Row) float64 { return positive(float64(len(r.Rounds))) },
	},
	{
		Key: "disturbed", Group: "Rounds", Title: "disturbed", Name: "disturbed rounds", Better: -1, About: "Rounds in which other processes took more than 5 % of the machine, twice.",
		ofRow: func(r *result.Row) float64 { return ofRounds(r, float64(disturbed(r))) },
	},
	{
		Key: "others", Group: "Rounds", Title: "others %", Name: "others' CPU %", Digits: 1, Better: -1, About: "The most that other processes took of the machine's CPU time in a round.",
		ofRow: func(r *result.Row) float64 {
			return 100 * ofRounds(r, most(r, func(x *result.Round) float64 { return x.OtherShare }))
		},
	},
	{
		Key: "load", Group: "Rounds", Title: "load", Name: "load before", Digits: 1, Better: -1, About: "The highest load average of a minute before a round.",
		ofRow: func(r *result.Row) float64 {
			return ofRounds(r, most(r, func(x *result.Round) float64 { return x.Load }))
		},
	},
}

func latency(key, title, about string, of func(*result.Figures) float64, given func(*result.Row) [2]float64) figure {
	return figure{
		Key: key, Group: "Latency, µs", Title: title, Name: title + " µs", Better: -1, Speed: true, About: about,
		Span:  key[0] == 'p',
		of:    func(f *result.Figures) float64 { return positive(of(f)) },
		given: given,
	}
}

func system(key, title, about string, of func(*result.Figures) *float64) figure {
	return figure{
		Key: key, Group: "System calls a call", Title: title, Name: title + " a call", Digits: 2, Better: -1, Speed: true, About: about,
		of: func(f *result.Figures) float64 { return optional(of(f)) },
	}
}

// ofRounds is v where there are rounds to know it from.
func ofRounds(r *result.Row, v float64) float64 {
	if len(r.Rounds) == 0 {
		return math.NaN()
	}
	return v
}

func disturbed(r *result.Row) int {
	n := 0
	for i := range r.Rounds {
		if r.Rounds[i].Disturbed {
			n++
		}
	}
	return n
}

func most(r *result.Row, of func(*result.Round) float64) float64 {
	v := 0.0
	for i := range r.Rounds {
		v = max(v, of(&r.Rounds[i]))
	}
	return v
}

// figureOf returns the column of a key that this package itself wrote.
func figureOf(key string) *figure {
	return &figures[slices.IndexFunc(figures, func(f figure) bool { return f.Key == key })]
}

// value reads the figure; NaN is not known.
func (f *figure) value(r *result.Row) float64 {
	var v float64
	if f.ofRow != nil {
		v = f.ofRow(r)
	} else {
		v = f.of(&r.Figures)
	}
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// span returns the least and the most of the rounds, and whether that says anything: one round has
// no spread.
func (f *figure) span(r *result.Row) (least, most float64, ok bool) {
	if f.given != nil {
		if g := f.given(r); known(g[0]) && known(g[1]) {
			return g[0], g[1], g[1] > g[0]
		}
	}
	if f.of == nil {
		return 0, 0, false
	}
	least, most = math.Inf(1), math.Inf(-1)
	for i := range r.Rounds {
		v := f.of(&r.Rounds[i].Figures)
		if math.IsNaN(v) {
			continue
		}
		least, most = min(least, v), max(most, v)
	}
	return least, most, most > least
}
