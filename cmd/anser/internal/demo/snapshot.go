package demo

import "time"

// Snapshot is how things are.
type Snapshot struct {
	Registry          string
	Elapsed           time.Duration // of the traffic
	Rows              []Row
	Calls, Errors     int64
	Rate              float64 // calls a second, in the last three
	P50, P99          time.Duration
	Killed, Restarted int
	Step              string // what goes on, or ""
	Last              string // what the last step has shown, or ""
	Final             bool   // there will not be another one
}

// Row is one instance. Rate is that of the last three seconds, the percentiles are those of the last ten.
type Row struct {
	Service, Instance, Address, State string
	Calls, Errors                     int64
	Rate                              float64
	P50, P99                          time.Duration
}

// Summary is what came of the demo. Its JSON is the output of "anser demo --json".
type Summary struct {
	Seconds   float64 `json:"seconds"`
	Calls     int64   `json:"calls"` // that succeeded
	Errors    int64   `json:"errors"`
	CallsPerS float64 `json:"calls_per_s"`
	P50       int64   `json:"p50_us"`
	P99       int64   `json:"p99_us"`
	Services  int     `json:"services"`
	Instances int     `json:"instances"` // that were up in the end
	Restarts  int     `json:"restarts"`  // instances that were replaced after they were killed or drained
	Registry  string  `json:"registry"`

	Steps []StepResult `json:"steps"` // in the order in which they were performed

	Killed   int   `json:"-"` // of the restarts
	FirstErr error `json:"-"` // of the calls that failed
}

// snapshot puts together what the fleet and the figures know.
func (d *demo) snapshot() Snapshot {
	s := Snapshot{Registry: d.url}
	d.mu.Lock()
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

// summary is the end of the story.
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
