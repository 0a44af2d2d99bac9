package doctor

import (
	"fmt"
	"time"
)

// Status is the result of a check.
type Status string

// The statuses, in the order of severity.
const (
	Pass Status = "pass"
	Note Status = "note" // worth knowing, and nothing to do
	Warn Status = "warn" // works, and should be looked at
	Fail Status = "fail" // does not work
)

// Finding is the result of one check. Its texts have no control characters, whatever came from the
// network.
type Finding struct {
	Check   string `json:"check"` // see docs/observability.md: "tls.expiry"
	Status  Status `json:"status"`
	Subject string `json:"subject,omitempty"` // such as the key of an instance
	Text    string `json:"text"`
	Advice  string `json:"advice,omitempty"` // what to do
}

// Step is a part of reaching an address, in the order in which they are done.
type Step struct {
	Name   string `json:"step"` // "DNS", "connect", "TLS", "handshake", "description"
	Micros int64  `json:"time_us"`
	Error  string `json:"error,omitempty"` // why it failed
}

// Timing says where the time of reaching an address went.
type Timing struct {
	Subject string `json:"subject"` // an address
	Steps   []Step `json:"steps"`
}

// Group is the findings about one thing.
type Group struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
	Timings  []Timing  `json:"timings,omitempty"`
}

// Report is the result of an examination.
type Report struct {
	Groups []*Group `json:"groups"`
	Passed int      `json:"passed"`
	Noted  int      `json:"noted"`
	Warned int      `json:"warned"`
	Failed int      `json:"failed"`
}

// Add adds a group and counts its findings.
func (r *Report) Add(g *Group) {
	if g.Findings == nil {
		g.Findings = []Finding{} // not null in JSON
	}
	r.Groups = append(r.Groups, g)
	for _, f := range g.Findings {
		switch f.Status {
		case Pass:
			r.Passed++
		case Note:
			r.Noted++
		case Warn:
			r.Warned++
		default:
			r.Failed++
		}
	}
}

// findings collects the results of checks about one subject.
type findings struct {
	subject string
	list    []Finding
}

// add adds a finding; its texts may come from the network.
func (f *findings) add(check string, s Status, advice, format string, args ...any) {
	f.list = append(f.list, Finding{check, s, plain(f.subject), plain(fmt.Sprintf(format, args...)), plain(advice)})
}

func (f *findings) pass(check, format string, args ...any) { f.add(check, Pass, "", format, args...) }

func (f *findings) note(check, format string, args ...any) { f.add(check, Note, "", format, args...) }

// step measures a part of reaching an address.
func (t *Timing) step(name string, f func() error) error {
	began := time.Now()
	err := f()
	s := Step{Name: name, Micros: time.Since(began).Microseconds()}
	if err != nil {
		s.Error = plain(err.Error())
	}
	t.Steps = append(t.Steps, s)
	return err
}

// took returns the duration of the last step.
func (t *Timing) took() time.Duration {
	return time.Duration(t.Steps[len(t.Steps)-1].Micros) * time.Microsecond
}
