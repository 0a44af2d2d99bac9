package measure

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// contract is the version that clients follow.
const contract = 1

// line is what a client prints; see CONTRACT.md.
type line struct {
	Contract   int    `json:"contract"`
	Calls      int64  `json:"calls"`
	Errors     int64  `json:"errors"`
	Wrong      int64  `json:"wrong"`
	FirstError string `json:"first_error"`
	Began      int64  `json:"began_unix_ns"`
	Ended      int64  `json:"ended_unix_ns"`
	Encoded    string `json:"hdr"`
	histogram  *hdrhistogram.Histogram
}

// parseLine reads and checks a line. Every error is a failure of the peer.
func parseLine(text []byte) (*line, error) {
	l := new(line)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return nil, failed("the client printed %q, which is not the object of the contract: %v", short(text), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, failed("the client printed more than one object in its line: %q", short(text))
	}
	switch {
	case l.Contract != contract:
		return nil, failed("the client follows version %d of the contract, and the runner version %d", l.Contract, contract)
	case l.Calls < 0 || l.Errors < 0 || l.Wrong < 0:
		return nil, failed("the client counts less than nothing: %q", short(text))
	case l.Began <= 0 || l.Ended <= l.Began:
		return nil, failed("the client's measurement ends at %d, not after its begin at %d", l.Ended, l.Began)
	}
	var err error
	if l.histogram, err = hdrhistogram.Decode([]byte(l.Encoded)); err != nil {
		return nil, failed("the client's histogram cannot be read: %v", err)
	}
	if n := l.histogram.TotalCount(); n != l.Calls {
		return nil, failed("the client counts %d calls, and %d in its histogram", l.Calls, n)
	}
	return l, nil
}

// seconds is how long the measurement took.
func (l *line) seconds() float64 { return float64(l.Ended-l.Began) / 1e9 }

func short(text []byte) []byte {
	const most = 300
	if len(text) > most {
		return text[:most]
	}
	return text
}
