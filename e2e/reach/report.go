package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
)

// report holds all measurements. Sections that were not requested are empty.
type report struct {
	Go    string        `json:"go"`
	OS    string        `json:"os"`
	CPUs  int           `json:"cpus"`
	Say   []*comparison `json:"say,omitempty"`
	Round *comparison   `json:"round,omitempty"`
	// RoundCeiling compares the ceiling program with what Round compares Anser with.
	RoundCeiling *comparison   `json:"round_ceiling,omitempty"`
	Slow         []*comparison `json:"slow,omitempty"`
	// Calls of Stream are messages. The base has no figures of the reading side's CPU.
	Stream *comparison   `json:"stream,omitempty"`
	Beside *comparison   `json:"beside,omitempty"`
	Burn   *burning      `json:"burn,omitempty"`
	Idle   *idling       `json:"idle,omitempty"`
	Conns  []*connecting `json:"conns,omitempty"`
	// The server CPU of Forward is that of the server that forwards the calls.
	Forward []*comparison `json:"forward,omitempty"`
	Gateway []*passage    `json:"gateway,omitempty"`
	Observe []*watching   `json:"observe,omitempty"`
	Console *consoleCost  `json:"console,omitempty"`
	Large   []*swapping   `json:"large,omitempty"`
	// LargeBeside are small calls, and its base the same without large messages.
	LargeBeside *comparison `json:"large_beside,omitempty"`
	LargeApart  *comparison `json:"large_apart,omitempty"`
}

func newReport() *report {
	return &report{Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// spread is the median of some rounds, with the least and the most.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(all []float64) spread {
	s := slices.Sorted(slices.Values(all))
	n := len(s)
	return spread{(s[(n-1)/2] + s[n/2]) / 2, s[0], s[n-1]}
}

// comparison is of two loads that ran in turns.
type comparison struct {
	Callers   int     `json:"callers"`
	OwnMethod bool    `json:"slow_calls_have_own_method,omitempty"`
	Own       figures `json:"own"`  // medians
	Base      figures `json:"base"` // medians
	Ratio     spread  `json:"ratio"`

	measure    func(figures) float64 // what the ratio is of
	own, bases []figures
}

func callsPerS(f figures) float64 { return f.CallsPerS }
func p50(f figures) float64       { return f.P50 }
func p99(f figures) float64       { return f.P99 }
func clientCPU(f figures) float64 { return f.ClientCPU }
func serverCPU(f figures) float64 { return f.ServerCPU }

// add adds a round.
func (c *comparison) add(own, base figures) {
	c.own, c.bases = append(c.own, own), append(c.bases, base)
}

// end computes what is reported.
func (c *comparison) end() {
	c.Own, c.Base, c.Ratio = medians(c.own), medians(c.bases), spreadOf(c.ratios(c.measure))
}

// ratios returns the ratio of what is measured in each round.
func (c *comparison) ratios(measure func(figures) float64) (all []float64) {
	for i := range c.own {
		all = append(all, measure(c.own[i])/measure(c.bases[i]))
	}
	return all
}

func medians(all []figures) figures {
	of := func(f func(figures) float64) float64 {
		var values []float64
		for _, x := range all {
			values = append(values, f(x))
		}
		return spreadOf(values).Median
	}
	m := figures{ServerCPU: of(func(f figures) float64 { return f.ServerCPU })}
	m.GatewayCPU = of(func(f figures) float64 { return f.GatewayCPU })
	m.Calls = all[0].Calls
	m.Seconds = of(func(f figures) float64 { return f.Seconds })
	m.CallsPerS, m.P50, m.P99 = of(callsPerS), of(p50), of(p99)
	m.ClientCPU = of(func(f figures) float64 { return f.ClientCPU })
	m.Max = of(func(f figures) float64 { return f.Max })
	return m
}

// burning is how far the calls of few connections spread over the cores. Its base is a server that
// may use one core.
type burning struct {
	comparison
	Conns int    `json:"conns"`
	Cores spread `json:"cores"` // CPU time of the server in wall time
}

// idling is what an idle connection costs the server.
type idling struct {
	Conns      int     `json:"conns"`
	Bytes      int64   `json:"rss_bytes_per_conn"`
	BytesFreed int64   `json:"rss_bytes_per_conn_after_gc"`
	CPU        float64 `json:"cpu_percent_of_a_core"`
}

// connecting is the cost of a call if each caller has its own connection. Its base has fewConns of
// them. Ratio is of both sides' CPU time for a call.
type connecting struct {
	comparison
	Conns  int    `json:"conns"`
	Client spread `json:"client_cpu_ratio"`
	Server spread `json:"server_cpu_ratio"`
	Quiet  spread `json:"quiet_client_cpu_percent"`
	// The same ratios of exchanges over bare connections, and Client and Server in terms of them,
	// round by round.
	BareClient spread `json:"bare_client_cpu_ratio"`
	BareServer spread `json:"bare_server_cpu_ratio"`
	OverClient spread `json:"client_cpu_ratio_over_bare"`
	OverServer spread `json:"server_cpu_ratio_over_bare"`

	bare comparison
}

// end computes what is reported.
func (c *connecting) end() {
	var quiet []float64
	for _, f := range c.own {
		quiet = append(quiet, f.QuietCPU)
	}
	c.bare.measure = c.measure
	c.comparison.end()
	c.bare.end()
	client, server := c.ratios(clientCPU), c.ratios(serverCPU)
	bareClient, bareServer := c.bare.ratios(clientCPU), c.bare.ratios(serverCPU)
	c.Client, c.Server, c.Quiet = spreadOf(client), spreadOf(server), spreadOf(quiet)
	c.BareClient, c.BareServer = spreadOf(bareClient), spreadOf(bareServer)
	for i := range client {
		client[i] /= bareClient[i]
		server[i] /= bareServer[i]
	}
	c.OverClient, c.OverServer = spreadOf(client), spreadOf(server)
}

// print writes the tables.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s, %d CPUs\n", r.Go, r.OS, r.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Say) > 0 {
		heading(t, "581-byte messages, against the ceiling program", "calls/s")
		for _, c := range r.Say {
			c.print(t, fmt.Sprintf("anser, c=%d", c.Callers), fmt.Sprintf("ceiling, c=%d", c.Callers))
		}
	}
	if r.Round != nil {
		heading(t, "one caller, against a bare TCP ping-pong", "p50")
		r.Round.printOwn(t, "anser")
		r.RoundCeiling.printOwn(t, "ceiling")
		printLine(t, "ping-pong", r.Round.Base, "")
	}
	if len(r.Slow) > 0 {
		heading(t, "1 % of the calls sleep 10 ms: the other ones", "p99")
		for _, c := range r.Slow {
			name := "same method"
			if c.OwnMethod {
				name = "separate method"
			}
			c.print(t, fmt.Sprintf("with, %s, c=%d", name, c.Callers), "without")
		}
	}
	if r.Stream != nil {
		heading(t, "messages of 1 KiB one way on a stream, against a bare connection", "messages/s")
		r.Stream.print(t, "anser", "bare connection")
		heading(t, "calls next to a stream with a slow reader, on one connection", "p99")
		r.Beside.print(t, "with", "without")
	}
	if r.Burn != nil {
		heading(t, fmt.Sprintf("100 µs of CPU in the handler, %d callers, %d connection", r.Burn.Callers, r.Burn.Conns), "calls/s")
		r.Burn.print(t, "anser", "with GOMAXPROCS=1")
		fmt.Fprintf(t, "cores used, of %d\t%s\n", r.CPUs, r.Burn.Cores)
	}
	if r.Idle != nil {
		fmt.Fprintf(t, "\n%d idle connections\n", r.Idle.Conns)
		fmt.Fprintf(t, "memory of the server, each\t%.1f KiB\n", float64(r.Idle.Bytes)/1024)
		fmt.Fprintf(t, "after a garbage collection\t%.1f KiB\n", float64(r.Idle.BytesFreed)/1024)
		fmt.Fprintf(t, "CPU of the server\t%.2f %% of a core\n", r.Idle.CPU)
	}
	if len(r.Conns) > 0 {
		heading(t, "a connection for each caller", "CPU of a call")
		for _, c := range r.Conns {
			c.print(t, fmt.Sprintf("%d connections", c.Conns), fmt.Sprintf("%d connections", fewConns))
			c.bare.print(t, fmt.Sprintf("%d bare connections", c.Conns), fmt.Sprintf("%d bare connections", fewConns))
			fmt.Fprintf(t, "ratio of the client's CPU\t%s, bare %s, over bare %s\n", c.Client, c.BareClient, c.OverClient)
			fmt.Fprintf(t, "ratio of the server's CPU\t%s, bare %s, over bare %s\n", c.Server, c.BareServer, c.OverServer)
			fmt.Fprintf(t, "CPU of the client while all are quiet\t%.2f %% of a core\n", c.Quiet.Median)
		}
	}
	if len(r.Forward) > 0 {
		heading(t, "calls that a server forwards, against direct ones", "server CPU")
		for _, c := range r.Forward {
			c.print(t, fmt.Sprintf("forwarded, c=%d", c.Callers), fmt.Sprintf("direct, c=%d", c.Callers))
		}
	}
	if len(r.Gateway) > 0 {
		fmt.Fprint(t, "\nthrough gateways\n\tcalls/s\tp50 µs\tclient CPU µs\tgateway CPU µs\tserver CPU µs\tratio of all CPU (least – most)\n")
		for _, p := range r.Gateway {
			ratio := ""
			if !p.Alone {
				ratio = p.Ratio.String()
				printPassage(t, p.Name+", direct", p.Base, "")
			}
			printPassage(t, p.Name+", through", p.Own, ratio)
		}
	}
	if len(r.Observe) > 0 {
		heading(t, "calls that are observed, on both sides", "calls/s")
		for _, c := range r.Observe {
			c.print(t, fmt.Sprintf("%s, c=%d", c.Name, c.Callers), c.BaseName)
			fmt.Fprintf(t, "ratio of all CPU\t%s\n", c.AllCPU)
		}
	}
	if r.Console != nil {
		r.Console.print(t)
	}
	if r.LargeBeside != nil {
		r.printLarge(t)
	}
	return t.Flush()
}

func printPassage(t io.Writer, name string, f figures, ratio string) {
	fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%s\n", name, f.CallsPerS, f.P50, f.ClientCPU, f.GatewayCPU, f.ServerCPU, ratio)
}

func heading(t io.Writer, title, ratio string) {
	fmt.Fprintf(t, "\n%s\n\tcalls/s\tp50 µs\tp99 µs\tclient CPU µs\tserver CPU µs\tratio of %s (least – most)\n", title, ratio)
}

func (c *comparison) print(t io.Writer, own, base string) {
	c.printOwn(t, own)
	printLine(t, base, c.Base, "")
}

func (c *comparison) printOwn(t io.Writer, name string) { printLine(t, name, c.Own, c.Ratio.String()) }

func printLine(t io.Writer, name string, f figures, ratio string) {
	known := func(format string, value float64) string {
		if value == 0 {
			return "-" // the ping-pong reports no rate, and Kitex's program no latency that is read here
		}
		return fmt.Sprintf(format, value)
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2f\t%.2f\t%s\n", name, known("%.0f", f.CallsPerS), known("%.1f", f.P50), known("%.1f", f.P99), f.ClientCPU, f.ServerCPU, ratio)
}

// String returns the median, the least and the most.
func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f – %.2f)", s.Median, s.Min, s.Max) }
