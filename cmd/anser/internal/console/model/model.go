// Package model has the types that the console sends to its page, as JSON. Rates are calls per
// second, durations are integers of nanoseconds, times are in UTC. Lists are never null unless they
// are left out. A name, address or text from another process is printable and has at most
// [MaxText] characters and an ellipsis; see [Text].
package model

import (
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// Figures describe the calls of a few seconds. Percentiles are 0 without calls.
type Figures struct {
	Rate   float64       `json:"rate"`   // calls per second
	Failed float64       `json:"failed"` // of these, calls per second that failed
	P50    time.Duration `json:"p50"`
	P90    time.Duration `json:"p90"`
	P99    time.Duration `json:"p99"`
}

// System is the overview of a system.
type System struct {
	Time time.Time `json:"time"`
	// Interval is the longest time between two readings of a process, and Period the time between
	// two updates.
	Interval   time.Duration `json:"interval"`
	Period     time.Duration `json:"period"`
	Processes  Processes     `json:"processes"`
	Registries []Registry    `json:"registries"`
	Services   []Service     `json:"services"`
	Edges      []Edge        `json:"edges"`
	Changes    []Change      `json:"changes"` // the latest ones, the last one first
	// LongHistory says that series of more than an hour are known, from Prometheus.
	LongHistory bool `json:"long_history,omitempty"`
	Arena       bool `json:"arena,omitempty"` // the console has the report of an arena
}

// Processes counts the processes with an admin page.
type Processes struct {
	Known  int      `json:"known"`
	Read   int      `json:"read"`   // answered at the last reading
	Failed []Failed `json:"failed"` // the others, up to 100
}

// Failed is a process whose admin page did not answer.
type Failed struct {
	Address string `json:"address"`
	Error   string `json:"error"`
}

// Registry is a registry that the console follows.
type Registry struct {
	Name    string        `json:"name"` // its URL
	Kind    string        `json:"kind"` // "etcd", "consul" and so on
	Healthy bool          `json:"healthy"`
	Trouble string        `json:"trouble,omitempty"`
	Since   time.Time     `json:"since,omitzero"`    // when the present trouble began
	Latency time.Duration `json:"latency,omitempty"` // of the last question
}

// Service is a service with the calls that its instances serve. The latencies are those of the
// servers.
type Service struct {
	Name      string `json:"name"`
	Registry  string `json:"registry,omitempty"` // name of the registry that has it
	Instances int    `json:"instances"`
	Up        int    `json:"up"`      // wants calls, and no client says otherwise
	Ejected   int    `json:"ejected"` // by at least one client
	Down      int    `json:"down"`    // unreachable for at least one client, or for the console
	Drained   int    `json:"drained"` // draining or disabled
	Figures
	InFlight     int64     `json:"in_flight"`
	Zones        []string  `json:"zones"`
	Versions     []string  `json:"versions"`
	Fingerprints []string  `json:"fingerprints"`       // of the whole contract, one for each that instances have
	Rules        uint64    `json:"rules"`              // version of the rules in the registry; 0: none
	External     bool      `json:"external,omitempty"` // called, but not in the registry
	Stale        time.Time `json:"stale,omitzero"`     // since when the list of instances may be outdated
}

// Edge describes the calls of one service to another. The latencies are those of the callers.
type Edge struct {
	From string `json:"from"` // a service, or "process:NAME" of a process without one
	To   string `json:"to"`
	Figures
	Retried float64 `json:"retried"` // calls per second with more than one attempt
}

// Health of an instance, as its callers see it.
const (
	OK      = "ok"
	Ejected = "ejected"
	Down    = "down"
	Unknown = "unknown" // no caller is known
)

// Instance is an instance of a service. Figures and what follows them are those of its process, as
// far as its admin page is known.
type Instance struct {
	Service string `json:"service"`
	ID      string `json:"id"` // key in the registry
	Address string `json:"address"`
	Zone    string `json:"zone,omitempty"`
	Version string `json:"version,omitempty"`
	Group   string `json:"group,omitempty"`
	Weight  int    `json:"weight"`
	State   string `json:"state"` // "up", "draining" or "disabled"
	// ByRule are the properties that the rules of the service set: "state", "weight" and "tags".
	// The fields above have what the rules say, which is what callers use.
	ByRule    []string          `json:"by_rule,omitempty"`
	Announced string            `json:"announced,omitempty"` // state that the instance has announced, if a rule sets another one
	Health    string            `json:"health"`              // one of the constants
	Why       string            `json:"why,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	Figures
	InFlight   int64     `json:"in_flight"`
	Waiting    int64     `json:"waiting"`
	CPU        float64   `json:"cpu"`    // processors in use
	Memory     uint64    `json:"memory"` // bytes
	Goroutines int       `json:"goroutines"`
	Conns      int       `json:"conns"`
	Process    string    `json:"process,omitempty"` // its name
	Admin      string    `json:"admin,omitempty"`   // address of the admin page
	Started    time.Time `json:"started,omitzero"`
	Stale      time.Time `json:"stale,omitzero"` // since when the figures are not known
}

// InstancePage is a part of a list of instances.
type InstancePage struct {
	Total     int        `json:"total"`    // instances of the service, or of the system
	Matching  int        `json:"matching"` // of these, the ones that were asked for
	Offset    int        `json:"offset"`   // of the first one that is listed
	Instances []Instance `json:"instances"`
}

// InstanceMap says how instances are, in a few bytes for each.
type InstanceMap struct {
	Total    int      `json:"total"`
	Matching int      `json:"matching"`
	Most     float64  `json:"most,omitempty"` // value of the last digit of Shares
	Services []MapRow `json:"services"`
}

// MapRow has the instances of a service in the order of an [InstancePage] without another one.
type MapRow struct {
	Service string `json:"service"`
	Looks   string `json:"looks"`            // a letter for each instance, one of the constants
	Shares  string `json:"shares,omitempty"` // a digit of [Shares] for each instance
}

// What an instance looks like.
const (
	LooksOK     = 'o'
	LooksSlow   = 's' // over twice the average p99 of its service
	LooksBad    = 'b' // ejected, unreachable, or calls fail
	LooksOut    = 'd' // draining or disabled
	LooksStale  = 't' // its admin page does not answer
	LooksUnread = 'n' // the console has read no admin page of it
)

// Shares are the digits for shares of a value in the largest one.
const Shares = "0123456789abcdefghijklmnopqrstuvw"

// CodeRate is the rate of calls that ended with a code.
type CodeRate struct {
	Code string  `json:"code"`
	Rate float64 `json:"rate"`
}

// AttemptRate is the rate of calls with a number of attempts.
type AttemptRate struct {
	Attempts int     `json:"attempts"`
	Rate     float64 `json:"rate"`
}

// Method describes a method that the instances of a service serve.
type Method struct {
	Name string `json:"name"`
	Figures
	P999        time.Duration `json:"p999"`
	Codes       []CodeRate    `json:"codes"`
	Retried     float64       `json:"retried"`  // calls per second that were further attempts
	Refused     float64       `json:"refused"`  // calls per second that did not run
	Replayed    float64       `json:"replayed"` // calls per second that got the reply of an earlier one
	Queue       time.Duration `json:"queue"`    // averages, as the next ones
	Decode      time.Duration `json:"decode"`
	Handle      time.Duration `json:"handle"`
	Encode      time.Duration `json:"encode"`
	Runs        string        `json:"runs,omitempty"` // "inline", "worker" or "both"
	Stream      bool          `json:"stream,omitempty"`
	Oneway      bool          `json:"oneway,omitempty"`
	Idempotent  bool          `json:"idempotent,omitempty"`
	Limit       int64         `json:"limit,omitempty"`         // adaptive limits, the sum of all instances
	MaxInFlight int           `json:"max_in_flight,omitempty"` // of one instance
	Running     int64         `json:"running"`
	Waiting     int64         `json:"waiting"`
}

// RulesState says whether the clients follow the rules of a service.
type RulesState struct {
	Version uint64 `json:"version"` // in the registry; 0: none
	Trouble string `json:"trouble,omitempty"`
}

// Contract is a contract with the number of instances that serve it.
type Contract struct {
	Fingerprint string `json:"fingerprint"`
	Instances   int    `json:"instances"`
}

// ServiceDetail is a service with its parts.
type ServiceDetail struct {
	Service   Service    `json:"service"`
	Instances []Instance `json:"instances"` // up to 200
	Tags      []string   `json:"tags"`      // of all instances, as name=value, up to 200
	Methods   []Method   `json:"methods"`
	Callers   []Edge     `json:"callers"`
	Callees   []Edge     `json:"callees"`
	Rules     RulesState `json:"rules"`
	Contracts []Contract `json:"contracts"`
	Changes   []Change   `json:"changes"`
	Folders   []string   `json:"folders"` // of files that the service seems to serve
}

// InstanceFigures are the calls of one method that an instance serves.
type InstanceFigures struct {
	Instance string `json:"instance"`
	Figures
	Stale time.Time `json:"stale,omitzero"`
}

// MethodDetail is a method with all of its parts.
type MethodDetail struct {
	Method    Method            `json:"method"`
	Instances []InstanceFigures `json:"instances"`
	Attempts  []AttemptRate     `json:"attempts"` // of the sampled calls
	Slow      []Call            `json:"slow"`
	Failures  []Call            `json:"failures"`
}

// Call is a recorded call with the process that has recorded it.
type Call struct {
	Process  string `json:"process"`
	Service  string `json:"service,omitempty"`
	Instance string `json:"instance,omitempty"` // on the side "server"
	*telemetry.Call
}

// Conn is an open connection with the process that has it.
type Conn struct {
	Process string `json:"process"`
	Service string `json:"service"`
	Side    string `json:"side"` // "server" or "client"
	admin.Conn
}

// Series are figures over time: the value i covers the time from From + i*Step to From +
// (i+1)*Step, and is null where nothing is known.
type Series struct {
	From   time.Time        `json:"from"`
	Source string           `json:"source"` // OfConsole or OfPrometheus
	Step   time.Duration    `json:"step"`
	Rate   []*float64       `json:"rate"`
	Failed []*float64       `json:"failed"`
	P50    []*time.Duration `json:"p50"`
	P90    []*time.Duration `json:"p90"`
	P99    []*time.Duration `json:"p99"`
}

// Sources of series.
const (
	OfConsole    = "console"
	OfPrometheus = "prometheus"
)

// Heat has the numbers of calls by time and duration: Counts[i][j] is the number of calls in the
// step i that took at most Bounds[j], and more than Bounds[j-1].
type Heat struct {
	From   time.Time       `json:"from"`
	Step   time.Duration   `json:"step"`
	Bounds []time.Duration `json:"bounds"`
	Counts [][]uint64      `json:"counts"` // a row is null where nothing is known
}

// Kinds of changes.
const (
	Joined    = "joined"
	Left      = "left"
	Eject     = "ejected"
	Returned  = "returned"
	State     = "state"
	Weight    = "weight"
	RulesSet  = "rules"
	OfStore   = "registry"
	OfProcess = "process"
	Breaker   = "breaker"
	Limit     = "limit"
	Canary    = "canary"
	Fault     = "fault"
)

// Change is an event of the system.
type Change struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind"`
	Service  string    `json:"service,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Text     string    `json:"text"`
	By       string    `json:"by,omitempty"` // user of the console, or author of rules
}

// Effects are the latest changes of the rules of a service, and what one of them has changed.
type Effects struct {
	Changes []RulesChange `json:"changes"` // the last one first
	// Shown is null if nothing is known about the service. If no change is known, it has no time,
	// and its groups the calls of the last minute.
	Shown *Effect `json:"shown"`
}

// RulesChange is a change of the rules of a service that the console has seen.
type RulesChange struct {
	Version uint64    `json:"version"` // 0: the rules were deleted
	Former  uint64    `json:"former"`  // version before; 0: there were none
	Time    time.Time `json:"time,omitzero"`
	Author  string    `json:"author,omitempty"`
	Comment string    `json:"comment,omitempty"`
}

// Effect compares the calls to a service before a change of its rules and since.
type Effect struct {
	RulesChange
	Ended  time.Time     `json:"ended,omitzero"` // of the comparison, by another change or by time
	By     string        `json:"by"`             // of the groups: "version", "zone", "instance" or "tag:NAME"
	Groups []EffectGroup `json:"groups"`         // all instances first, whose name is ""
	More   int           `json:"more,omitempty"` // groups that are left out
	// Callers has all calls as their callers see them, with what rules do there.
	Callers EffectGroup `json:"callers"`
}

// EffectGroup is a group of instances.
type EffectGroup struct {
	Name      string        `json:"name"`
	Instances int           `json:"instances"`
	Before    EffectFigures `json:"before"`
	Since     EffectFigures `json:"since"`
}

// EffectFigures are the figures of all calls of some time. Known is false if there are no figures
// of that time.
type EffectFigures struct {
	Known  bool          `json:"known"`
	Span   time.Duration `json:"span"` // the longest that an instance was read
	Rate   float64       `json:"rate"`
	Failed float64       `json:"failed"` // of these, calls per second that failed
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
}

// Update is what has changed since the last update.
type Update struct {
	Time       time.Time     `json:"time"`
	Interval   time.Duration `json:"interval"`
	Period     time.Duration `json:"period"`
	Services   []Service     `json:"services"`
	Edges      []Edge        `json:"edges"`
	Gone       Gone          `json:"gone"`
	Processes  Processes     `json:"processes"`
	Registries []Registry    `json:"registries"`
	Changes    []Change      `json:"changes"` // new ones, the last one first
}

// Gone names what is no longer there.
type Gone struct {
	Services []string    `json:"services"`
	Edges    [][2]string `json:"edges"` // from, to
}

// Folder is a folder of files that a service serves with package filetransfer.
type Folder struct {
	Service string `json:"service"`
	Name    string `json:"name"` // before the dot of its methods
}

// Found is a result of a search.
type Found struct {
	Kind string `json:"kind"` // "service", "folder", "method" or "instance"
	Name string `json:"name"`
	URL  string `json:"url"` // path of the page that shows it
}
