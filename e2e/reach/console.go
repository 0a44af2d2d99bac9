package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/e2e/internal/say"
)

// The system that a console watches.
const (
	watchedServers = 4
	watchedClients = 4
)

// consoleLoads are shares of the calls per second that the system can make.
var consoleLoads = []float64{0.6, 0.2, 0.05, 0.01}

// The times of the measurement. A console reads every second for a while after the last viewer has
// left, and then every ten to thirty seconds.
const (
	consoleWarm  = 26 * time.Second // the console measures what a reading costs, after its start
	consoleTurn  = 10 * time.Second // with it or without it
	consoleAgain = 2 * time.Second  // after it was stopped
	consoleLeft  = 36 * time.Second // after the viewer
	consoleAlone = 30 * time.Second
)

// consoling is what a console costs a system at a load.
type consoling struct {
	Load      float64 `json:"load"` // share of what the system can do
	CallsPerS float64 `json:"calls_per_s"`
	CallsCPU  float64 `json:"calls_cpu_ms_per_s"` // of all processes, without readings
	Viewer    readers `json:"with_viewer"`
	Alone     readers `json:"without_viewer"`
	// PerCall is the processor time of the processes for a call, with a console and a viewer, in
	// terms of that without.
	PerCall  spread `json:"cpu_per_call_ratio"`
	Registry spread `json:"registry_ms_per_s"` // that the console costs it with a viewer
}

// readers is what the readings of a console cost.
type readers struct {
	PerS    float64 `json:"readings_per_s"`
	Console spread  `json:"console_ms_per_s"`
	Pages   spread  `json:"pages_ms_per_s"`
	Share   spread  `json:"share_percent"` // of the two in terms of the calls
}

// consoleCost is how the parts of readings were found.
type consoleCost struct {
	Processes int          `json:"processes"`
	CallsPerS float64      `json:"calls_per_s_at_most"`
	Outside   float64      `json:"reading_us_outside_of_its_handler"`
	Loads     []*consoling `json:"loads"`
}

// watchedSystem is a registry with servers and clients of a service, all with admin pages.
type watchedSystem struct {
	registry         *process
	servers, clients []*process
	at               string   // address of the registry
	pages            []string // of the clients, which are in no registry
	program          string   // anser
	outside          float64  // seconds of a reading that its handler does not see
}

// measureConsole finds what a console with a viewer, and one without, costs the system.
func measureConsole(o options, r *report) error {
	if o.anser == "" {
		o.anser = filepath.Join(o.dir, "anser")
		if err := build(o.anser, "github.com/anser-rpc/anser/cmd/anser"); err != nil {
			return err
		}
	}
	s, err := startWatched(o.anser)
	defer s.stop()
	if err != nil {
		return err
	}
	if s.outside, err = s.calibrate(); err != nil {
		return err
	}
	c := &consoleCost{Processes: watchedServers + watchedClients, Outside: s.outside * 1e6}
	if c.CallsPerS, err = s.capacity(o.long(consoleTurn)); err != nil {
		return err
	}
	for _, load := range consoleLoads {
		one, err := s.measure(o, load, c.CallsPerS)
		if err != nil {
			return fmt.Errorf("%.0f %% of the load: %w", load*100, err)
		}
		c.Loads = append(c.Loads, one)
	}
	r.Console = c
	return nil
}

// long returns a time of the measurement.
func (o options) long(d time.Duration) time.Duration { return time.Duration(float64(d) * o.scale) }

// startWatched starts the system. It must be stopped also after an error.
func startWatched(program string) (*watchedSystem, error) {
	s := &watchedSystem{program: program}
	var err error
	if s.registry, s.at, err = serverOf("process-registry"); err != nil {
		return s, err
	}
	add := func(list *[]*process, role, id string) (string, error) {
		p, err := self(role, fmt.Sprintf(`{"Registry":%q,"ID":%q}`, s.at, id))
		if err != nil {
			return "", err
		}
		*list = append(*list, p)
		var st say.Stat
		err = p.line(&st)
		return st.Page, err
	}
	for i := range watchedServers {
		if _, err := add(&s.servers, "process-watched", fmt.Sprintf("server-%d", i)); err != nil {
			return s, err
		}
	}
	for i := range watchedClients {
		page, err := add(&s.clients, "process-callers", fmt.Sprintf("client-%d", i))
		if err != nil {
			return s, err
		}
		s.pages = append(s.pages, page)
	}
	return s, nil
}

func (s *watchedSystem) stop() {
	for _, p := range append(append(s.clients, s.servers...), s.registry) {
		if p != nil {
			p.stop()
		}
	}
}

// used is what the system has used so far. Times are in seconds.
type used struct {
	at                time.Time
	calls, readings   int64
	cpu, handlers     float64 // of servers and clients; handlers: of readings
	registry, console float64
}

func (s *watchedSystem) used(console *process) (u used, err error) {
	u.at = time.Now()
	if console != nil {
		if u.console, err = processCPU(console.cmd.Process.Pid); err != nil {
			return u, err
		}
	}
	st, err := s.registry.ask(say.CommandStat)
	if err != nil {
		return u, err
	}
	u.registry = st.CPU
	for _, list := range [][]*process{s.servers, s.clients} {
		for _, p := range list {
			st, err := p.ask(say.CommandStat)
			if err != nil {
				return u, err
			}
			u.calls, u.readings = u.calls+st.Calls, u.readings+st.Readings
			u.cpu, u.handlers = u.cpu+st.CPU, u.handlers+st.ReadingCPU
		}
	}
	return u, nil
}

// during returns what is used in a time.
func (s *watchedSystem) during(d time.Duration, console *process) (u used, seconds float64, err error) {
	before, err := s.used(console)
	if err != nil {
		return u, 0, err
	}
	time.Sleep(d)
	if u, err = s.used(console); err != nil {
		return u, 0, err
	}
	u.calls, u.readings = u.calls-before.calls, u.readings-before.readings
	u.cpu, u.handlers = u.cpu-before.cpu, u.handlers-before.handlers
	u.registry, u.console = u.registry-before.registry, u.console-before.console
	return u, u.at.Sub(before.at).Seconds(), nil
}

// pagesOf returns the processor time of the readings in the processes.
func (s *watchedSystem) pagesOf(u used) float64 { return u.handlers + float64(u.readings)*s.outside }

// rate makes the clients make a number of calls per second together, or as many as they can if it
// is negative.
func (s *watchedSystem) rate(perSecond float64) error {
	for _, p := range s.clients {
		if _, err := p.ask(fmt.Sprint(say.CommandRate, perSecond/watchedClients)); err != nil {
			return err
		}
	}
	return nil
}

// calibrate returns the processor time of a reading in a process without calls that its handler
// does not see: HTTP before and after it.
func (s *watchedSystem) calibrate() (float64, error) {
	const readings = 500
	quiet, seconds, err := s.during(10*time.Second, nil)
	if err != nil {
		return 0, err
	}
	before, err := s.used(nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	reader, state := &admin.Reader{Client: client}, ""
	for range readings {
		d, err := reader.Figures(context.Background(), s.pages[0], state)
		if err != nil {
			return 0, err
		}
		state = d.State
		time.Sleep(20 * time.Millisecond)
	}
	after, err := s.used(nil)
	if err != nil {
		return 0, err
	}
	idle := quiet.cpu / seconds * after.at.Sub(before.at).Seconds()
	return max(after.cpu-before.cpu-idle-(after.handlers-before.handlers), 0) / readings, nil
}

// capacity returns how many calls per second the system makes.
func (s *watchedSystem) capacity(d time.Duration) (float64, error) {
	if err := s.rate(-1); err != nil {
		return 0, err
	}
	time.Sleep(consoleAgain)
	u, seconds, err := s.during(d, nil)
	return float64(u.calls) / seconds, errors.Join(err, s.rate(0))
}

// measure measures a share of the load: with a console and a viewer, and with the console stopped,
// in turns; and then with the console alone.
func (s *watchedSystem) measure(o options, load, most float64) (*consoling, error) {
	if err := s.rate(load * most); err != nil {
		return nil, err
	}
	console, url, err := s.startConsole()
	if err != nil {
		return nil, err
	}
	defer console.kill()
	viewer, leave := context.WithCancel(context.Background())
	defer leave()
	viewed := make(chan error, 1)
	go func() { viewed <- look(viewer, url) }()
	time.Sleep(consoleWarm)
	c := &consoling{Load: load}
	var calls, rates, perCall, registry []float64
	var watched readings
	for i := range o.rounds {
		var with, without used
		var took, tookWithout float64
		for j := range 2 { // the one that begins changes
			if (i+j)%2 == 0 {
				without, tookWithout, err = s.without(console, o.long(consoleTurn))
			} else {
				with, took, err = s.during(o.long(consoleTurn), console)
			}
			if err != nil {
				return nil, err
			}
		}
		watched.add(s, with, took)
		calls, rates = append(calls, (with.cpu-s.pagesOf(with))/took*1e3), append(rates, float64(with.calls)/took)
		registry = append(registry, (with.registry/took-without.registry/tookWithout)*1e3)
		perCall = append(perCall, with.cpu/float64(with.calls)/(without.cpu/float64(without.calls)))
	}
	c.Viewer = watched.end()
	leave()
	if err := <-viewed; err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	time.Sleep(consoleLeft)
	u, seconds, err := s.during(o.long(consoleAlone), console)
	if err != nil {
		return nil, err
	}
	var alone readings
	alone.add(s, u, seconds)
	c.Alone = alone.end()
	c.CallsPerS, c.CallsCPU, c.PerCall, c.Registry = spreadOf(rates).Median, spreadOf(calls).Median, spreadOf(perCall), spreadOf(registry)
	return c, nil
}

// without stops the console for a while.
func (s *watchedSystem) without(console *process, d time.Duration) (u used, seconds float64, err error) {
	if err := console.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return u, 0, err
	}
	u, seconds, err = s.during(d, nil)
	err = errors.Join(err, console.cmd.Process.Signal(syscall.SIGCONT))
	time.Sleep(consoleAgain)
	return u, seconds, err
}

// readings collects what readings cost in some rounds.
type readings struct{ perS, console, pages, share []float64 }

func (r *readings) add(s *watchedSystem, u used, seconds float64) {
	pages := s.pagesOf(u)
	r.perS = append(r.perS, float64(u.readings)/seconds)
	r.console, r.pages = append(r.console, u.console/seconds*1e3), append(r.pages, pages/seconds*1e3)
	r.share = append(r.share, (u.console+pages)/(u.cpu-pages)*100)
}

func (r *readings) end() readers {
	return readers{spreadOf(r.perS).Median, spreadOf(r.console), spreadOf(r.pages), spreadOf(r.share)}
}

// startConsole starts a console of the system, and returns its URL.
func (s *watchedSystem) startConsole() (*process, string, error) {
	args := append([]string{"console", "--registry", "etcd://" + s.at, "--listen", "127.0.0.1:0"}, s.pages...)
	p, err := start(s.program, args...)
	if err != nil {
		return nil, "", err
	}
	line, err := p.out.ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), " at ")
	if err != nil || !ok {
		p.kill()
		return nil, "", fmt.Errorf("the console says %q: %w", line, err)
	}
	return p, url, nil
}

// look follows the events of a console as a page does, until ctx ends.
func look(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"api/events", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines, seen := bufio.NewReader(answer.Body), false
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if !seen {
				err = fmt.Errorf("the console has sent no system: %w", err)
			}
			return err
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok && !seen {
			seen = true
			if !json.Valid([]byte(text)) {
				return fmt.Errorf("the console sends %.100q", text)
			}
		}
	}
}

// runWatched runs a process of the system.
func runWatched(f func(say.Watched, io.Reader, io.Writer) error, text string, in io.Reader, out io.Writer) error {
	var o say.Watched
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	return f(o, in, out)
}

// print writes the table.
func (c *consoleCost) print(t io.Writer) {
	fmt.Fprintf(t, "\nwhat a console costs %d processes, which can make %.0f calls/s; a reading takes %.0f µs outside of its handler\n", c.Processes, c.CallsPerS, c.Outside)
	fmt.Fprint(t, "\tcalls/s\tCPU of calls ms/s\treadings/s\tconsole ms/s\tin processes ms/s\tshare of the calls' CPU, % (least – most)\n")
	for _, l := range c.Loads {
		for _, k := range []struct {
			name string
			readers
		}{{"a viewer", l.Viewer}, {"no viewer", l.Alone}} {
			fmt.Fprintf(t, "%.0f %% of the load, %s\t%.0f\t%.1f\t%.2f\t%.2f\t%.2f\t%s\n",
				l.Load*100, k.name, l.CallsPerS, l.CallsCPU, k.PerS, k.Console.Median, k.Pages.Median, k.Share)
		}
		fmt.Fprintf(t, "CPU per call with a viewer, against without a console\t%s\n", l.PerCall)
		fmt.Fprintf(t, "CPU of the registry with it, ms/s\t%s\n", l.Registry)
	}
}
