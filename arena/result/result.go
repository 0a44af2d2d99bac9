// Package result is the document that a run of the arena writes and that its reports read.
package result

import "time"

// Schema is the version of the document. A reader refuses a newer one.
const Schema = 1

// Document is what arena run --json writes.
type Document struct {
	Schema  int       `json:"schema"`
	Command []string  `json:"command"` // that repeats it
	Commit  string    `json:"commit"`  // of Anser, with + and a hash of the changes when files were changed
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Machine Machine   `json:"machine"`
	Rows    []Row     `json:"rows"`
	Trials  []Trial   `json:"trials,omitempty"`
	NotRun  []NotRun  `json:"not_run,omitempty"`
	Codecs  []Codec   `json:"codecs,omitempty"`
	// CodecsCommit is that of Codecs, where they were measured on another one than the rows.
	CodecsCommit string `json:"codecs_commit,omitempty"`
}

// Machine is where it ran.
type Machine struct {
	CPU       string            `json:"cpu"`
	Cores     int               `json:"cores"`
	MemoryMiB int               `json:"memory_mib"`
	OS        string            `json:"os"`
	Kernel    string            `json:"kernel"`
	Tools     map[string]string `json:"tools"` // version of go, java, g++, …
}

// NotRun is a peer that could not be run, and why: never a silent gap.
type NotRun struct {
	Peer   string `json:"peer"`
	Reason string `json:"reason"` // "needs mvn"
}

// Shape is what was asked of a peer, besides the workload.
type Shape struct {
	Callers int     `json:"callers"`
	Conns   int     `json:"conns"` // 0: one for each caller
	Fresh   bool    `json:"fresh,omitempty"`
	Window  int     `json:"window,omitempty"`
	Rate    float64 `json:"rate,omitempty"` // calls/s offered; 0: closed loop
	// Share is the share of the peer's own peak that Rate is: the calls/s that it reached with the
	// same callers and connections in a closed loop. 0: the rate is the same one for all peers.
	Share   float64 `json:"share,omitempty"`
	Payload int     `json:"payload"`
	SleepUS int     `json:"sleep_us,omitempty"`
	WorkUS  int     `json:"work_us,omitempty"`
	Servers int     `json:"servers"`
	Clients int     `json:"clients"`
	Hosts   int     `json:"hosts"`           // 1, or 2: two network namespaces
	Calls   int     `json:"calls,omitempty"` // instead of seconds
	Seconds float64 `json:"seconds"`         // of each measurement
}

// Row is a peer under one workload and shape: the median of its rounds, figure by figure. Ranges
// hold the least and the most of the rounds. A row with wrong replies, or errors in more than one
// call of a hundred, is not Valid.
type Row struct {
	Peer      string   `json:"peer"`
	Framework string   `json:"framework"`
	Version   string   `json:"version"`
	Language  string   `json:"language"`
	Codec     string   `json:"codec,omitempty"`
	Settings  string   `json:"settings"`
	Marks     []string `json:"marks,omitempty"`
	Published string   `json:"published,omitempty"` // the source, where the figures are its authors' and not measured here
	Workload  string   `json:"workload"`
	Shape     Shape    `json:"shape"`
	Valid     bool     `json:"valid"`
	// Best means that the connections of Shape are the best choice for the peer under this load,
	// among those it supports.
	Best bool `json:"best,omitempty"`
	Figures
	CallsPerSecondRange [2]float64 `json:"calls_per_s_range"`
	CPURange            [2]float64 `json:"cpu_us_per_call_range"`
	P50Range            [2]float64 `json:"p50_us_range"`
	P99Range            [2]float64 `json:"p99_us_range"`
	Rounds              []Round    `json:"rounds"`
}

// Trial is a short measurement in a closed loop, by which a peer's connections were chosen. Its
// figures are for this choice only.
type Trial struct {
	Peer     string `json:"peer"`
	Workload string `json:"workload"`
	Shape    Shape  `json:"shape"`
	Valid    bool   `json:"valid"`
	Round
}

// Round is one measurement.
type Round struct {
	Began      time.Time `json:"began"`
	Disturbed  bool      `json:"disturbed,omitempty"` // other processes took more than 5 % of the machine, and so did the repetition
	OtherShare float64   `json:"other_share"`         // of the machine's CPU time, by other processes
	Load       float64   `json:"load"`                // average of a minute, before it
	FirstError string    `json:"first_error,omitempty"`
	Figures
}

// Figures are what is measured. A figure that could not be read is null.
type Figures struct {
	Calls          int64    `json:"calls"`
	Errors         int64    `json:"errors"`
	Wrong          int64    `json:"wrong"`
	SuccessRate    float64  `json:"success_rate"`
	CallsPerSecond float64  `json:"calls_per_s"`
	MeanUS         float64  `json:"mean_us"`
	MinUS          float64  `json:"min_us"`
	P50US          float64  `json:"p50_us"`
	P90US          float64  `json:"p90_us"`
	P99US          float64  `json:"p99_us"`
	P999US         float64  `json:"p99_9_us"`
	MaxUS          float64  `json:"max_us"`
	CPUUS          float64  `json:"cpu_us_per_call"` // of both sides
	ClientCPUUS    float64  `json:"client_cpu_us_per_call"`
	ServerCPUUS    float64  `json:"server_cpu_us_per_call"`
	ClientMiB      float64  `json:"client_mib"` // resident, the most
	ServerMiB      float64  `json:"server_mib"`
	WireBytes      *float64 `json:"wire_bytes_per_call"` // both directions, with the headers of TCP and IP
	ClientReads    *float64 `json:"client_reads_per_call"`
	ClientWrites   *float64 `json:"client_writes_per_call"`
	ServerReads    *float64 `json:"server_reads_per_call"`
	ServerWrites   *float64 `json:"server_writes_per_call"`
	ClientSyscalls *float64 `json:"client_syscalls_per_call"` // of every kind
	ServerSyscalls *float64 `json:"server_syscalls_per_call"`
}

// Codec is one line of the comparison of codecs: the message of 581 bytes' data.
type Codec struct {
	Name         string  `json:"name"`
	Library      string  `json:"library"` // with its version
	Anser        bool    `json:"anser"`   // Anser offers it
	Language     string  `json:"language"`
	EncodeNS     float64 `json:"encode_ns"`
	DecodeNS     float64 `json:"decode_ns"`
	Bytes        int     `json:"bytes"`
	EncodeAllocs int64   `json:"encode_allocs"`
	DecodeAllocs int64   `json:"decode_allocs"`
	EncodeBytes  int64   `json:"encode_alloc_bytes"`
	DecodeBytes  int64   `json:"decode_alloc_bytes"`
}
