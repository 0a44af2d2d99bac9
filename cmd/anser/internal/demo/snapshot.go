package demo

import "time"

// Snapshot is the state of the demo.
type Snapshot struct {
	Registry          string
	Address           string        // of the gateway
	Admin             string        // URL of the admin page of the callers
	Metrics           string        // URL of the metrics of the callers
	Record            string        // folder with a recording of each instance
	Console           string        // URL of the console, or ""
	Debug             string        // address at which the callers are asked; "" before there are any
	Elapsed           time.Duration // of the traffic
	Rows              []Row
	Calls, Errors     int64
	Rate              float64 // calls per second, over the last three seconds
	P50, P99          time.Duration
	Killed, Restarted int
	Step              string // current step, or ""
	Last              string // result of the last step, or ""
	Final             bool   // this is the last snapshot
}

// Row is one instance. Rate covers the last three seconds, the percentiles the last ten.
type Row struct {
	Service, Instance, Address, State string
	Calls, Errors                     int64
	Rate                              float64
	P50, P99                          time.Duration
}

// Summary is the result of the demo. Its JSON is the output of "anser demo --json".
type Summary struct {
	Seconds   float64 `json:"seconds"`
	Calls     int64   `json:"calls"` // successful calls
	Errors    int64   `json:"errors"`
	CallsPerS float64 `json:"calls_per_s"`
	P50       int64   `json:"p50_us"`
	P99       int64   `json:"p99_us"`
	Services  int     `json:"services"`
	Instances int     `json:"instances"` // up at the end
	Restarts  int     `json:"restarts"`  // instances replaced after they were killed or drained
	Registry  string  `json:"registry"`

	Steps []StepResult `json:"steps"` // in the order of execution

	Killed   int   `json:"-"` // of the restarts
	FirstErr error `json:"-"` // of the failed calls
}

// snapshot combines the state of the fleet and the figures.
func (d *demo) snapshot() Snapshot {
	s := Snapshot{Registry: d.url, Address: d.address, Admin: d.watched.url, Metrics: d.watched.url + metricsPath, Record: d.o.Record, Console: d.console}
	d.mu.Lock()
	members := d.rpcx
	s.Debug = d.debugAt
	s.Step = d.step
	if n := len(d.results); n > 0 {
		s.Last = d.results[n-1].String()
	}
	d.mu.Unlock()
	d.fleet.mu.Lock()
	s.Killed, s.Restarted = d.fleet.kills, d.fleet.restarted
	for _, in := range d.fleet.instances {
		s.Rows = append(s.Rows, Row{Service: in.service, Instance: in.id, Address: in.address, State: in.state})
	}
	d.fleet.mu.Unlock()
	s.Rows = append(s.Rows, members...)

	f := d.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Elapsed = f.elapsedLocked()
	s.Calls, s.Errors, s.Rate = f.all.calls, f.all.errors, f.all.rate()
	s.P50, s.P99 = f.all.percentiles()
	for i := range s.Rows {
		r := &s.Rows[i]
		of := f.ofLocked(r.Instance)
		r.Calls, r.Errors, r.Rate = of.calls, of.errors, of.rate()
		r.P50, r.P99 = of.percentiles()
	}
	return s
}

// summary returns the final result.
func (d *demo) summary() Summary {
	s := Summary{Services: len(services), Registry: d.url}
	d.mu.Lock()
	s.Steps = append([]StepResult{}, d.results...) // not null in JSON
	d.mu.Unlock()
	d.fleet.mu.Lock()
	s.Killed, s.Restarts = d.fleet.kills, d.fleet.kills+d.fleet.restarted
	for _, in := range d.fleet.instances {
		if in.state == up {
			s.Instances++
		}
	}
	d.fleet.mu.Unlock()

	f := d.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	elapsed := f.elapsedLocked().Seconds()
	s.Seconds = float64(int64(elapsed*100+0.5)) / 100
	s.Calls, s.Errors, s.FirstErr = f.all.calls, f.all.errors, f.firstErr
	if elapsed > 0 {
		s.CallsPerS = float64(int64(float64(s.Calls)/elapsed*10+0.5)) / 10
	}
	s.P50, s.P99 = at(f.all.total, 50).Microseconds(), at(f.all.total, 99).Microseconds()
	return s
}
