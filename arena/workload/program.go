package workload

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Contract is the version of CONTRACT.md that this package follows.
const Contract = 1

// ServerOptions are the flags of a server program.
type ServerOptions struct {
	Addr  string
	Sleep time.Duration
	Work  time.Duration
	slots chan struct{} // nil: as many calls sleep and work at once as there are
}

// ClientOptions are the flags of a client program.
type ClientOptions struct {
	Addrs    []string
	Workload string // say or add
	Callers  int
	Conns    int // 0: one for each caller
	Fresh    bool
	Window   int
	Rate     float64
	Warmup   time.Duration
	Measured time.Duration
	Calls    int
	Payload  int
	Deadline time.Duration // of a call, 0: none
	async    bool
}

// Connections returns how many connections the callers share.
func (o *ClientOptions) Connections() int {
	if o.Conns == 0 {
		return o.Callers
	}
	return o.Conns
}

// Addr returns the server of a connection or, where a caller has its own, of a caller.
func (o *ClientOptions) Addr(conn int) string { return o.Addrs[conn%len(o.Addrs)] }

// Call makes a call and checks its reply; ErrWrong says that the reply was wrong.
type Call func(ctx context.Context) error

// Start starts a call by the asynchronous API and returns what waits for its reply and checks it.
type Start func(ctx context.Context) (wait func() error)

// Program is a peer: one binary whose first argument is server or client.
type Program struct {
	Name string
	// Flags adds flags of the peer's own, or is nil.
	Flags func(f *flag.FlagSet)
	// Serve serves until ctx ends. It returns nil after that.
	Serve func(ctx context.Context, o *ServerOptions) error
	// Open connects and returns what caller i calls. It is asked for Window Calls of each caller;
	// one Call is used by one goroutine at a time. With Fresh, each Call connects by itself.
	Open func(ctx context.Context, o *ClientOptions) (caller func(i int) Call, closing func(), err error)
	// OpenAsync is Open for the asynchronous API, where a peer has one: the flag --async selects
	// it. One goroutine keeps a caller's Window of calls in flight, and makes them with one Start.
	OpenAsync func(ctx context.Context, o *ClientOptions) (caller func(i int) Start, closing func(), err error)
}

// Main runs the program of the command line and exits.
func (p *Program) Main() {
	if err := p.run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		code := 1
		if errors.Is(err, errUsage) {
			code = 2
		}
		os.Exit(code)
	}
	os.Exit(0)
}

var (
	errUsage       = errors.New("usage")
	errInterrupted = errors.New("interrupted: there is no result")
)

func (p *Program) run(args []string) error {
	if len(args) == 0 || args[0] != "server" && args[0] != "client" {
		return fmt.Errorf("%w: %s server|client --addr host:port [flags]", errUsage, p.Name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if args[0] == "server" {
		o, err := p.serverOptions(args[1:])
		if err != nil {
			return err
		}
		return p.Serve(ctx, o)
	}
	o, err := p.clientOptions(args[1:])
	if err != nil {
		return err
	}
	return p.client(ctx, o)
}

// opened is what Open or OpenAsync returned.
type opened struct {
	call  func(i int) Call
	start func(i int) Start // nil without --async
}

// one returns what a caller calls one after another.
func (o *opened) one(i int) Call {
	if o.start == nil {
		return o.call(i)
	}
	start := o.start(i)
	return func(ctx context.Context) error { return start(ctx)() }
}

func (p *Program) client(ctx context.Context, o *ClientOptions) error {
	var (
		a   alarm
		err error
	)
	if o.Rate > 0 {
		if a, err = newAlarm(); err != nil {
			return err
		}
	}
	open := new(opened)
	var closing func()
	if o.async {
		open.start, closing, err = p.OpenAsync(ctx, o)
	} else {
		open.call, closing, err = p.Open(ctx, o)
	}
	if err != nil {
		return err
	}
	defer closing()
	type outcome struct {
		*Result
		error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := load(ctx, o, open, a)
		done <- outcome{result, err}
	}()
	select {
	case out := <-done:
		if out.error != nil {
			return out.error
		}
		return json.NewEncoder(os.Stdout).Encode(out.Result)
	case <-ctx.Done(): // a call that hangs does not keep the program
		return errInterrupted
	}
}

func (p *Program) flags(kind string) *flag.FlagSet {
	f := flag.NewFlagSet(p.Name+" "+kind, flag.ContinueOnError)
	if p.Flags != nil {
		p.Flags(f)
	}
	return f
}

func (p *Program) serverOptions(args []string) (*ServerOptions, error) {
	f := p.flags("server")
	o := new(ServerOptions)
	f.StringVar(&o.Addr, "addr", "", "host:port to listen on")
	sleep := f.Int("sleep-us", 0, "microseconds that the handler sleeps")
	work := f.Int("work-us", 0, "microseconds that the handler works")
	slots := f.Int("slots", 0, "calls that sleep and work at the same time, 0: all")
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if *slots > 0 {
		o.slots = make(chan struct{}, *slots)
	}
	o.Sleep, o.Work = time.Duration(*sleep)*time.Microsecond, time.Duration(*work)*time.Microsecond
	switch {
	case o.Addr == "" || f.NArg() > 0:
		return nil, fmt.Errorf("%w: --addr host:port and no arguments", errUsage)
	case *sleep < 0 || *work < 0 || *slots < 0:
		return nil, fmt.Errorf("%w: --sleep-us, --work-us and --slots are not negative", errUsage)
	}
	return o, nil
}

func (p *Program) clientOptions(args []string) (*ClientOptions, error) {
	f := p.flags("client")
	o := new(ClientOptions)
	addrs := f.String("addr", "", "host:port of the servers, separated by commas")
	f.StringVar(&o.Workload, "workload", "say", "say or add")
	f.IntVar(&o.Callers, "callers", 1, "concurrent callers")
	f.IntVar(&o.Conns, "conns", 1, "connections that the callers share, 0: one for each")
	f.BoolVar(&o.Fresh, "fresh", false, "a connection for each call")
	f.IntVar(&o.Window, "window", 1, "calls in flight for each caller")
	f.Float64Var(&o.Rate, "rate", 0, "calls/s of all callers, 0: closed loop")
	warmup := f.Float64("warmup", 1, "seconds before the measurement")
	seconds := f.Float64("seconds", 5, "seconds of the measurement")
	f.IntVar(&o.Calls, "calls", 0, "measured calls, instead of seconds")
	f.IntVar(&o.Payload, "payload", StandardPayload, "bytes of the request of say")
	deadline := f.Int("deadline-ms", 0, "milliseconds that a call of an open loop has, 0: no deadline")
	if p.OpenAsync != nil {
		f.BoolVar(&o.async, "async", false, "use the asynchronous API")
	}
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	o.Addrs = strings.Split(*addrs, ",")
	o.Warmup, o.Measured = time.Duration(*warmup*float64(time.Second)), time.Duration(*seconds*float64(time.Second))
	o.Deadline = time.Duration(*deadline) * time.Millisecond
	switch {
	case *deadline < 0 || *deadline > 0 && (o.Rate == 0 || o.async):
		return nil, fmt.Errorf("%w: --deadline-ms is not negative, and for calls one by one at a --rate", errUsage)
	case *addrs == "" || f.NArg() > 0:
		return nil, fmt.Errorf("%w: --addr host:port and no arguments", errUsage)
	case o.Workload != "say" && o.Workload != "add":
		return nil, fmt.Errorf("%w: workload %q: say or add", errUsage, o.Workload)
	case o.Callers < 1 || o.Conns < 0 || o.Window < 1 || !(o.Rate >= 0) || o.Calls < 0 || o.Warmup < 0:
		return nil, fmt.Errorf("%w: --callers and --window are at least 1, nothing is negative", errUsage)
	case o.Calls == 0 && o.Measured <= 0:
		return nil, fmt.Errorf("%w: --seconds of the measurement are more than 0, or give --calls", errUsage)
	case o.Payload < LeastPayload:
		return nil, fmt.Errorf("%w: --payload %d: %d bytes are the least", errUsage, o.Payload, LeastPayload)
	}
	return o, nil
}
