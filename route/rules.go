// Package route controls the calls of clients by traffic rules: which instances a call may go to,
// by group, version, tag, condition or percentage; the weight and state of instances; and per
// method the timeout, attempts, limits, mocks and faults.
//
// The rules of a service are one document in the service's registry, which its clients follow: see
// [Rules]. [Static] uses rules in the program instead. [Parse] defines the document, [Load],
// [Save], [History] and [Rollback] manage its versions, and [DryRun] reports the effect that a
// change would have had on recorded calls.
package route

import (
	"encoding/json"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// RuleSet is the value of "rules" in a document. The zero value has no effect. Lists are in the
// order in which they apply. A RuleSet must not be modified after it was passed on.
type RuleSet struct {
	Groups     []GroupRule     `json:"groups,omitempty" doc:"which group and version a caller of a group or version calls; the first that matches"`
	Tags       []TagRule       `json:"tags,omitempty" doc:"calls with a tag go to instances with the same tag, calls without to instances without; at most 4"`
	Conditions []ConditionRule `json:"conditions,omitempty" doc:"calls that match go only to some instances; all that match apply, one after the other; at most 128"`
	Split      []SplitRule     `json:"split,omitempty" doc:"shares of the calls for some instances; at most 64"`
	Instances  []InstanceRule  `json:"instances,omitempty" doc:"weight, state and tags of instances; of several that match, the last one that sets a value counts"`
	Methods    []MethodRule    `json:"methods,omitempty" doc:"timeout, attempts and limits; the first that matches"`
	Mocks      []MockRule      `json:"mocks,omitempty" doc:"fixed replies in place of calls, or of calls that failed; the first that matches"`
	Faults     []FaultRule     `json:"faults,omitempty" doc:"delays and errors for tests; all that match"`
}

// text returns the rules in JSON, or "" if there are none.
func (r *RuleSet) text() string {
	data, err := json.Marshal(r)
	if err != nil || string(data) == "{}" {
		return ""
	}
	return string(data)
}

// Match selects calls. An empty field matches all.
type Match struct {
	Methods  Patterns            `json:"methods,omitempty" doc:"full names of methods" values:"methods"`
	Metadata map[string]Patterns `json:"metadata,omitempty" doc:"what the call carries, by key; a key that is missing is an empty text" values:"metadata"`
	Caller   *CallerMatch        `json:"caller,omitempty" doc:"the caller"`
}

// CallerMatch selects clients by their route.From.
type CallerMatch struct {
	Service Patterns            `json:"service,omitempty" doc:"the caller's own service" values:"services"`
	Group   Patterns            `json:"group,omitempty" doc:"the caller's group"`
	Version Patterns            `json:"version,omitempty" doc:"the caller's version"`
	Zone    Patterns            `json:"zone,omitempty" doc:"the caller's zone" values:"zones"`
	Tags    map[string]Patterns `json:"tags,omitempty" doc:"the caller's tags"`
}

// Select selects instances. An empty field matches all. The patterns "$group", "$version" and
// "$zone" stand for the values of the caller.
type Select struct {
	ID      Patterns            `json:"id,omitempty" doc:"keys: ids, or addresses of instances without one" values:"instances"`
	Address Patterns            `json:"address,omitempty" doc:"host:port" values:"addresses"`
	Group   Patterns            `json:"group,omitempty" doc:"the instance's group" values:"groups,$group"`
	Version Patterns            `json:"version,omitempty" doc:"the instance's version" values:"versions,$version"`
	Zone    Patterns            `json:"zone,omitempty" doc:"the instance's zone" values:"zones,$zone"`
	Tags    map[string]Patterns `json:"tags,omitempty" doc:"the instance's tags" values:"tags"`
}

// Adjust returns an instance with the weight, state and tags that the rules give it for clients
// without properties of their own; see [From]. It shares nothing with in that it changes.
func (r *RuleSet) Adjust(in registry.Instance) registry.Instance {
	return r.adjuster(new(Caller))(in)
}

// GroupRule sets the group and version that a client calls.
type GroupRule struct {
	Name    string       `json:"name,omitempty" doc:"for people" values:"names"`
	Caller  *CallerMatch `json:"caller,omitempty" doc:"which clients; all if left out"`
	Group   Patterns     `json:"group,omitempty" doc:"group of the instances" values:"groups"`
	Version Patterns     `json:"version,omitempty" doc:"version of the instances" values:"versions"`
	Strict  bool         `json:"strict,omitempty" doc:"calls fail when no such instance can be reached; without it they go elsewhere"`
}

// TagRule separates calls with a tag from those without.
type TagRule struct {
	Name     string `json:"name,omitempty" doc:"for people" values:"names"`
	Tag      string `json:"tag" doc:"name of the instances' tag" values:"tags"`
	Metadata string `json:"metadata,omitempty" doc:"key of the metadata that holds the value; if the call has none, the caller's tag of that name counts" values:"metadata"`
	Strict   bool   `json:"strict,omitempty" doc:"calls with a tag fail when no instance that has it can be reached; without it they go to instances without the tag"`
}

// ConditionRule sends matching calls to some instances.
type ConditionRule struct {
	Name   string `json:"name,omitempty" doc:"for people" values:"names"`
	When   Match  `json:"when,omitzero" doc:"which calls"`
	To     Select `json:"to" doc:"which instances"`
	Strict bool   `json:"strict,omitempty" doc:"calls fail when no such instance can be reached; without it they go elsewhere"`
}

// SplitRule sends a share of the matching calls to some instances. The others go to instances that
// belong to no share. The shares of all rules that match a call add up.
type SplitRule struct {
	Name    string  `json:"name,omitempty" doc:"for people" values:"names"`
	When    Match   `json:"when,omitzero" doc:"which calls"`
	Percent float64 `json:"percent" doc:"the share, 0 to 100, in steps of 0.01"`
	By      string  `json:"by,omitempty" doc:"key of the metadata whose value keeps calls on one side; without it, and without a value, each call is random" values:"metadata"`
	To      Select  `json:"to" doc:"which instances"`
	Strict  bool    `json:"strict,omitempty" doc:"the share fails when no such instance can be reached; without it it goes elsewhere"`
	// Until bounds a share that nothing ends in time. Clients end it themselves.
	Until time.Time `json:"until,omitzero" doc:"when the share becomes 0, as 2026-01-02T15:04:05Z; never if left out"`
}

// open reports whether the share may get calls now.
func (s *SplitRule) open() bool { return s.Until.IsZero() || time.Now().Before(s.Until) }

// InstanceRule overrides properties of instances.
type InstanceRule struct {
	Name   string `json:"name,omitempty" doc:"for people" values:"names"`
	Match  Select `json:"match" doc:"which instances"`
	Weight *int   `json:"weight,omitempty" doc:"1 to 1000000; 100 is the default of an instance"`
	State  string `json:"state,omitempty" doc:"up, draining or disabled; the latter two get no further calls and finish those they have" values:"states"`
	// Tags are merged over several rules.
	Tags map[string]string `json:"tags,omitempty" doc:"tags that are set; an empty text removes one" values:"tags"`
}

// MethodRule overrides the client's options.
type MethodRule struct {
	Name        string   `json:"name,omitempty" doc:"for people" values:"names"`
	When        Match    `json:"when,omitzero" doc:"which calls"`
	Timeout     Duration `json:"timeout,omitempty" doc:"how long a call may take, all attempts together; the caller's deadline counts where it is earlier"`
	Attempts    int      `json:"attempts,omitempty" doc:"how often a call is sent at most, 1 to 5"`
	Mode        string   `json:"mode,omitempty" doc:"fail mode: failover, failfast, failtry or backup" values:"modes"`
	Rate        *Rate    `json:"rate,omitempty" doc:"calls per second of each client; more are refused"`
	Concurrency int      `json:"concurrency,omitempty" doc:"calls in flight of each client; more are refused"`
}

// Rate is a limit of calls.
type Rate struct {
	PerSecond float64 `json:"per_second" doc:"calls per second"`
	Burst     int     `json:"burst,omitempty" doc:"calls at once; as many as per_second if left out"`
}

// MockRule answers in place of the instances.
type MockRule struct {
	Name    string          `json:"name,omitempty" doc:"for people" values:"names"`
	When    Match           `json:"when,omitzero" doc:"which calls"`
	Failing bool            `json:"failing,omitempty" doc:"degrade: call, and answer only when that failed: it did not arrive, was refused, or a handler exceeded its deadline or returned unavailable, resource exhausted, internal or data loss"`
	Reply   json.RawMessage `json:"reply,omitempty" doc:"the reply as JSON"`
	Error   *ErrorSpec      `json:"error,omitempty" doc:"the error"`
}

// FaultRule makes calls slow or fail, until a fixed time.
type FaultRule struct {
	Name    string     `json:"name,omitempty" doc:"for people" values:"names"`
	When    Match      `json:"when,omitzero" doc:"which calls"`
	Percent float64    `json:"percent" doc:"the share of the calls, above 0 to 100, in steps of 0.01"`
	Delay   Duration   `json:"delay,omitempty" doc:"wait before the call, at most 1m"`
	Error   *ErrorSpec `json:"error,omitempty" doc:"fail with this error, and do not call"`
	Abort   bool       `json:"abort,omitempty" doc:"fail as if the connection had been lost: it is unknown whether the call ran"`
	Until   time.Time  `json:"until" doc:"when it ends, as 2026-01-02T15:04:05Z"`
}

// ErrorSpec is an error.
type ErrorSpec struct {
	Code    string `json:"code" doc:"such as unavailable or not found" values:"codes"`
	Message string `json:"message,omitempty" doc:"what the caller reads"`
}

// Duration is a time.Duration in the form "250ms".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Document is a version of the rules of a service, in the form of registries.
type Document struct {
	Version uint64    `json:"version,omitempty" doc:"grows by one with every change"`
	Author  string    `json:"author,omitempty" doc:"author of the change"`
	Time    time.Time `json:"time,omitzero" doc:"when"`
	Comment string    `json:"comment,omitempty" doc:"why"`
	Rules   RuleSet   `json:"rules" doc:"the rules"`

	revision uint64 // in the registry
}
