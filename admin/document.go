package admin

import (
	"encoding/json"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

// Format is the number of the format of [Document]. It grows when a field changes its meaning or
// goes away. New fields do not change it.
const Format = 1

// Document is what the page knows about its process, as programs read it: all of it as all.json,
// the part of one page as methods.json and so on. Parts that were not asked for are left out.
// Durations are integers of nanoseconds. Counters and histograms only grow while the process runs:
// a reader subtracts two documents with the same Process.ID to get rates.
type Document struct {
	Format  int       `json:"format"`
	Time    time.Time `json:"time"`
	Process Process   `json:"process"`
	// Window is the time that every Recent covers: the last few seconds. It is 0 if there was no
	// earlier measurement.
	Window time.Duration `json:"window"`
	// Served are the calls that servers of the process ran in the window, and Called the calls that
	// its clients made.
	Served  *Recent  `json:"served,omitempty"`
	Called  *Recent  `json:"called,omitempty"`
	Methods []Method `json:"methods,omitempty"`
	Servers []Server `json:"servers,omitempty"`
	Clients []Client `json:"clients,omitempty"`
	// Failures are the latest calls that failed and Slow the latest slow ones, the last one first.
	Failures *Calls `json:"failures,omitempty"`
	Slow     *Calls `json:"slow,omitempty"`
	// Trace are the calls of one trace that the process remembers, the first one first: page
	// "trace?id=…" alone has them.
	Trace *Calls `json:"trace,omitempty"`

	// The page "figures" alone has the fields below; see [Reader.Figures]. State names what the
	// document says, and Since the state on top of which it says it, or is "" if it says
	// everything.
	State string `json:"state,omitempty"`
	Since string `json:"since,omitempty"`
	// Changed names the parts that the document has because they are different since then.
	Changed []string `json:"changed,omitempty"`
}

// Process describes the process.
type Process struct {
	// ID is a random name that a process has from its start to its end.
	ID string `json:"id"`
	// Name is the name of the process for people: that of the option [Name], or of its program.
	Name string `json:"name"`
	// Services are the names of the services that the process has announced, sorted.
	Services   []string      `json:"services,omitempty"`
	Host       string        `json:"host,omitempty"`
	PID        int           `json:"pid"`
	Started    time.Time     `json:"started"`
	Go         string        `json:"go"`
	Module     string        `json:"module,omitempty"` // with its version, of the main package
	CPU        time.Duration `json:"cpu"`              // that the process has used
	RecentCPU  float64       `json:"recent_cpu"`       // processors used in the window: 1.5 are one and a half
	Processors int           `json:"processors"`       // GOMAXPROCS
	Memory     uint64        `json:"memory"`           // bytes that the runtime has from the system
	Heap       uint64        `json:"heap"`             // bytes of live objects, at the last collection
	Goroutines int           `json:"goroutines"`
}

// Histogram is a [telemetry.Histogram] in JSON: a duration d is in the bucket First + i, which
// Counts[i] counts, if 2^((First+i)/8) s < d <= 2^((First+i+1)/8) s. Two histograms of the same
// method add up and subtract bucket by bucket.
type Histogram struct {
	Scale  int           `json:"scale"` // 3
	Count  uint64        `json:"count"`
	Sum    time.Duration `json:"sum"`
	First  int           `json:"first"`
	Counts []uint64      `json:"counts"`
}

// Series are the calls of a method that ended with one code.
type Series struct {
	Code  anser.Code `json:"code"`
	Times Histogram  `json:"times"`
}

// Recent describes the calls of the window.
type Recent struct {
	Rate    float64       `json:"rate"`         // calls per second
	Failed  float64       `json:"failed"`       // of these, calls per second that failed
	P50     time.Duration `json:"p50"`          // half of the calls were at least as fast
	P90     time.Duration `json:"p90"`          //
	P99     time.Duration `json:"p99"`          //
	P999    time.Duration `json:"p999"`         //
	Sending float64       `json:"reply_rate"`   // bytes per second of replies, on a server
	Getting float64       `json:"request_rate"` // bytes per second of requests, on a server
}

// Method describes the calls of one method: on the side "server" the calls that servers of the
// process run, on the side "client" the ones that its clients make of one target.
type Method struct {
	Side     string   `json:"side"`
	Target   string   `json:"target,omitempty"`  // of the client
	Service  string   `json:"service,omitempty"` // that the client has from its registry
	Name     string   `json:"name"`
	Recent   *Recent  `json:"recent,omitempty"`
	Codes    []Series `json:"codes,omitempty"`
	Retried  uint64   `json:"retried,omitempty"` // calls with more than one attempt
	Refused  uint64   `json:"refused,omitempty"` // on a server, calls that did not run
	Replayed uint64   `json:"replayed,omitempty"`

	RequestBytes uint64        `json:"request_bytes,omitempty"`
	ReplyBytes   uint64        `json:"reply_bytes,omitempty"`
	Queue        time.Duration `json:"queue,omitempty"` // sums over the calls that ran
	Decode       time.Duration `json:"decode,omitempty"`
	Handle       time.Duration `json:"handle,omitempty"`
	Encode       time.Duration `json:"encode,omitempty"`

	Slowest *telemetry.Call `json:"slowest,omitempty"` // of the last one to two minutes
}

// Calls is a list of calls. Skipped is the number of calls that it leaves out because there were
// too many in a second.
type Calls struct {
	Calls   []*telemetry.Call `json:"calls"`
	Skipped uint64            `json:"skipped,omitempty"`
}

// Server describes one server of the process.
type Server struct {
	Addresses       []string         `json:"addresses"`
	Conns           int              `json:"conns"`
	InFlight        int64            `json:"in_flight"`
	Streams         int64            `json:"streams"`
	Waiting         int64            `json:"waiting"` // calls that wait under an adaptive limit
	Accepted        int64            `json:"accepted"`
	HandshakeFailed int64            `json:"handshake_failed"`
	Refused         int64            `json:"refused"`
	Cancelled       int64            `json:"cancelled"`
	Panics          int64            `json:"panics"`
	Handoffs        int64            `json:"handoffs"`
	Replayed        int64            `json:"replayed"`
	Denied          int64            `json:"denied"`
	CutOff          int64            `json:"cut_off"`
	WrongAddress    int64            `json:"wrong_address"`
	Unauthenticated map[string]int64 `json:"unauthenticated,omitempty"`
	Closed          map[string]int64 `json:"closed,omitempty"`
	LimitsHit       map[string]int64 `json:"limits_hit,omitempty"`
	Memory          int64            `json:"memory"` // bytes of large requests held now

	Methods       []ServedMethod `json:"methods,omitempty"`
	Connections   []Conn         `json:"connections,omitempty"`  // the busiest ones
	OpenStreams   []Stream       `json:"open_streams,omitempty"` // the oldest ones
	Options       []OptionValue  `json:"options,omitempty"`
	Announcements []Announcement `json:"announcements,omitempty"`
}

// ServedMethod describes how a server runs a method.
type ServedMethod struct {
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases,omitempty"`
	Stream     bool     `json:"stream,omitempty"`
	Oneway     bool     `json:"oneway,omitempty"`
	Idempotent bool     `json:"idempotent,omitempty"`
	Builtin    bool     `json:"builtin,omitempty"`
	Forwarded  bool     `json:"forwarded,omitempty"` // its calls go to other servers
	// Runs is where calls run now: "inline", on the goroutine that reads their connection, or
	// "worker". Fixed says that an option has decided it.
	Runs  string        `json:"runs"`
	Fixed bool          `json:"fixed,omitempty"`
	Run   time.Duration `json:"run,omitempty"` // average of a run, as far as the server has learned it

	Calls        int64         `json:"calls"` // handlers started
	Failed       int64         `json:"failed"`
	Refused      int64         `json:"refused"`
	MaxInFlight  int           `json:"max_in_flight,omitempty"`
	MaxQueueTime time.Duration `json:"max_queue_time,omitempty"`
	Limit        int64         `json:"limit,omitempty"` // of an adaptive limit, now
	Running      int64         `json:"running,omitempty"`
	Waiting      int64         `json:"waiting,omitempty"`
}

// Conn describes an open connection.
type Conn struct {
	Peer      string        `json:"peer"`
	Local     string        `json:"local,omitempty"`
	Protocol  string        `json:"protocol,omitempty"`
	TLS       string        `json:"tls,omitempty"`      // version
	Identity  string        `json:"identity,omitempty"` // subject of the client
	InFlight  int           `json:"in_flight"`
	Streams   int           `json:"streams,omitempty"`
	Draining  bool          `json:"draining,omitempty"`
	Checksums bool          `json:"checksums,omitempty"`
	Sent      uint64        `json:"sent"` // bytes; 0 for another protocol than Anser's, as the fields below
	Received  uint64        `json:"received"`
	Waiting   int           `json:"waiting,omitempty"` // bytes to be written
	Credit    int64         `json:"credit,omitempty"`  // bytes that may be sent on streams now
	Quiet     time.Duration `json:"quiet"`             // since the last bytes arrived
}

// Stream describes an open stream. Over another protocol than Anser's, Received are the messages
// that the handler has received, and there is no credit.
type Stream struct {
	Method        string        `json:"method"`
	Kind          string        `json:"kind,omitempty"` // "client", "server" or "both" send any number; "" is not known
	Peer          string        `json:"peer"`
	Local         string        `json:"local,omitempty"`
	Protocol      string        `json:"protocol,omitempty"`
	Identity      string        `json:"identity,omitempty"` // subject of the client
	Age           time.Duration `json:"age"`
	Sent          uint64        `json:"sent"`                     // messages
	Received      uint64        `json:"received"`                 // messages that have arrived
	SendCredit    int64         `json:"send_credit,omitempty"`    // bytes that may be sent now
	ReceiveCredit int64         `json:"receive_credit,omitempty"` // bytes that the peer may send now
	Waits         []string      `json:"waits,omitempty"`          // what Send and Recv wait for, for people
}

// OptionValue is an option in force.
type OptionValue struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default,omitempty"` // if Set
	Set     bool   `json:"set,omitempty"`     // the value is not the default
	By      string `json:"by,omitempty"`      // where it is from, if Set: see anser.OptionStatus
}

// Announcement says how an instance is registered.
type Announcement struct {
	Instance   registry.Instance `json:"instance"`
	Registered bool              `json:"registered"`
	Trouble    string            `json:"trouble,omitempty"`
	Since      time.Time         `json:"since,omitzero"`
}

// Client describes one client of the process: one edge of the map of a system.
type Client struct {
	Target  string `json:"target"`
	Service string `json:"service,omitempty"` // "" for fixed instances
	// Recent are the calls of all clients of the process for the target.
	Recent  *Recent   `json:"recent,omitempty"`
	Updated time.Time `json:"updated,omitzero"` // when the registry last gave a list
	// Saved is when the list was saved that the client loaded from disk, if it did.
	Saved     time.Time        `json:"saved,omitzero"`
	Trouble   string           `json:"trouble,omitempty"` // why the registry is unreachable
	Since     time.Time        `json:"since,omitzero"`    // when that began
	Subset    int              `json:"subset,omitempty"`
	Health    map[string]int64 `json:"health,omitempty"` // changes of the health of instances
	Instances []Instance       `json:"instances"`
	Rules     *Rules           `json:"rules,omitempty"`
	Failback  int              `json:"failback,omitempty"` // calls that wait to be retried
	Ignored   int64            `json:"ignored,omitempty"`

	Connections []Conn        `json:"connections,omitempty"` // the busiest ones
	Conns       int           `json:"conns"`
	OpenStreams []Stream      `json:"open_streams,omitempty"` // the oldest ones
	Streams     int           `json:"streams,omitempty"`
	Options     []OptionValue `json:"options,omitempty"`
	Overrides   []Override    `json:"overrides,omitempty"` // of Options, by the rules in force
}

// Instance is an instance as a client sees it.
type Instance struct {
	registry.Instance
	// Status is "connected", "idle", "down", "ejected" or "outside", and Why the reason for people.
	Status       string        `json:"status"`
	Why          string        `json:"why,omitempty"`
	Held         bool          `json:"held,omitempty"` // no longer listed
	Active       int64         `json:"active"`         // attempts in flight
	Latency      time.Duration `json:"latency,omitempty"`
	EjectedUntil time.Time     `json:"ejected_until,omitzero"`
	Ejections    int           `json:"ejections,omitempty"` // in a row
	Breakers     []Breaker     `json:"breakers,omitempty"`
}

// Breaker is a breaker that is not closed, or has counted failures.
type Breaker struct {
	Method string             `json:"method"`
	State  anser.BreakerState `json:"state"`
	Calls  int64              `json:"calls"`
	Failed int64              `json:"failed"`
	Until  time.Time          `json:"until,omitzero"`
}

// Rules describes the traffic rules that a client follows.
type Rules struct {
	Version     uint64    `json:"version,omitempty"` // 0: none
	Applied     time.Time `json:"applied,omitzero"`
	Saved       bool      `json:"saved,omitempty"`        // they were loaded from disk
	Trouble     string    `json:"trouble,omitempty"`      // why newer ones could not be read
	NotFollowed bool      `json:"not_followed,omitempty"` // the registry has rules, and the client has no router
	// Text are the rules in force: the value of "rules" in their document. Pages "registries" and
	// "all" have it.
	Text json.RawMessage `json:"text,omitempty"`
}
