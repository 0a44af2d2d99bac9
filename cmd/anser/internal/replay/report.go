package replay

import "time"

// Report is the result of a replay.
type Report struct {
	// Calls are the recorded calls that were chosen, and Sent the ones that were sent.
	Calls int64 `json:"calls"`
	Sent  int64 `json:"sent"`
	// Skipped are the calls of methods that may not be called again.
	Skipped int64 `json:"skipped"`
	// Damaged are parts of the recording that cannot be read.
	Damaged int64 `json:"damaged,omitempty"`
	// Differences are the fields that differ, by method, and are neither ignored nor noise.
	Differences int `json:"differences"`
	// Seconds is the time that the replay took, and Behind by how much the latest call was sent
	// after it was due.
	Seconds  float64       `json:"seconds"`
	Behind   time.Duration `json:"behind_ns"`
	Stopped  bool          `json:"interrupted,omitempty"`
	Targets  []string      `json:"targets"`
	Methods  []Method      `json:"methods"` // by name
	Baseline string        `json:"compared_with"`
}

// Method are the calls of a method.
type Method struct {
	Name    string `json:"name"`
	Sent    int64  `json:"sent"`
	Skipped int64  `json:"skipped,omitempty"`
	Why     string `json:"why_skipped,omitempty"`
	// Compared are the calls of which two replies were compared, and Differing the ones with a
	// difference that is not ignored, noise included.
	Compared  int64 `json:"compared"`
	Differing int64 `json:"differing"`
	// Recorded are the latencies of the recorded calls, at their server.
	Recorded    Latencies    `json:"recorded"`
	Targets     []Answers    `json:"targets"` // in the order of Report.Targets
	Differences []Difference `json:"differences,omitempty"`
	MorePaths   int64        `json:"more_paths,omitempty"` // differences of paths beyond the first 1,000
}

// Answers are those of a target.
type Answers struct {
	Codes     map[string]int64 `json:"codes"` // by code, "ok" included
	Latencies Latencies        `json:"latencies"`
}

// Latencies are in microseconds.
type Latencies struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

// Difference is a place at which replies differ.
type Difference struct {
	// Path is the field, "" for the whole reply and "(code)" for the result.
	Path  string `json:"path"`
	Calls int64  `json:"calls"`
	// Noise are the calls in which two replies of the old version differ there.
	Noise int64 `json:"noise,omitempty"`
	// Noisy says that it is not a difference of the versions.
	Noisy   bool     `json:"noisy,omitempty"`
	Example *Example `json:"example,omitempty"`
}

// Example is a call with a difference.
type Example struct {
	At      time.Time `json:"at"`
	Path    string    `json:"path"` // with the numbers of elements
	Old     string    `json:"old"`  // JSON, "" for nothing
	New     string    `json:"new"`
	Request string    `json:"request"`
}
