// Package route steers the calls of clients by traffic rules: which instances a call may go to, by group,
// version, tag, condition or percentage; what weight and state instances have; and for each method its
// time, attempts, limits, mocks and faults.
//
// The rules of a service are one document in the service's registry, which its clients follow: see [Rules].
// [Static] takes them from the program instead. [Parse] says what the document looks like, [Load], [Save],
// [History] and [Rollback] keep its versions, and [DryRun] says what a change would do to calls that were made.
package route

import (
	"encoding/json"
	"time"
)

// RuleSet is what a document says under "rules". The zero value changes nothing. Lists are in the order in
// which they apply. It must not be changed once it was given away.
type RuleSet struct {
	Groups     []GroupRule     `json:"groups,omitempty" doc:"which group and version a caller of a group or version calls; the first that matches"`
	Tags       []TagRule       `json:"tags,omitempty" doc:"calls with a tag go to instances with the same tag, calls without to instances without; at most 4"`
	Conditions []ConditionRule `json:"conditions,omitempty" doc:"calls that match go only to some instances; all that match apply, one after the other; at most 128"`
	Split      []SplitRule     `json:"split,omitempty" doc:"shares of the calls for some instances; at most 64"`
	Instances  []InstanceRule  `json:"instances,omitempty" doc:"weight and state of instances; of several that match, the last one that says something counts"`
	Methods    []MethodRule    `json:"methods,omitempty" doc:"time, attempts and limits; the first that matches"`
	Mocks      []MockRule      `json:"mocks,omitempty" doc:"fixed replies in place of calls, or of calls that failed; the first that matches"`
	Faults     []FaultRule     `json:"faults,omitempty" doc:"delays and errors for tests; all that match"`
}

// Match says for which calls a rule is. What is left out matches all.
type Match struct {
	Methods  Patterns            `json:"methods,omitempty" doc:"full names of methods"`
	Metadata map[string]Patterns `json:"metadata,omitempty" doc:"what the call carries, by key; a key that is missing is an empty text"`
	Caller   *CallerMatch        `json:"caller,omitempty" doc:"who calls"`
}

// CallerMatch says for which clients a rule is, by what they gave to route.From.
type CallerMatch struct {
	Service Patterns            `json:"service,omitempty" doc:"the caller's own service"`
	Group   Patterns            `json:"group,omitempty" doc:"the caller's group"`
	Version Patterns            `json:"version,omitempty" doc:"the caller's version"`
	Zone    Patterns            `json:"zone,omitempty" doc:"the caller's zone"`
	Tags    map[string]Patterns `json:"tags,omitempty" doc:"the caller's tags"`
}

// Select says which instances are meant. What is left out matches all. The patterns "$group", "$version" and
// "$zone" mean those of the caller.
type Select struct {
	ID      Patterns            `json:"id,omitempty" doc:"keys: ids, or addresses of instances without one"`
	Address Patterns            `json:"address,omitempty" doc:"host:port"`
	Group   Patterns            `json:"group,omitempty" doc:"the instance's group"`
	Version Patterns            `json:"version,omitempty" doc:"the instance's version"`
	Zone    Patterns            `json:"zone,omitempty" doc:"the instance's zone"`
	Tags    map[string]Patterns `json:"tags,omitempty" doc:"the instance's tags"`
}

// GroupRule says which group and version a client calls.
type GroupRule struct {
	Name    string       `json:"name,omitempty" doc:"for people"`
	Caller  *CallerMatch `json:"caller,omitempty" doc:"which clients; all if left out"`
	Group   Patterns     `json:"group,omitempty" doc:"group of the instances"`
	Version Patterns     `json:"version,omitempty" doc:"version of the instances"`
	Strict  bool         `json:"strict,omitempty" doc:"calls fail when no such instance can be reached; without it they go elsewhere"`
}

// TagRule keeps calls with a tag apart from those without.
type TagRule struct {
	Name     string `json:"name,omitempty" doc:"for people"`
	Tag      string `json:"tag" doc:"name of the instances' tag"`
	Metadata string `json:"metadata,omitempty" doc:"key of the metadata that holds the value; where the call has none, the caller's tag of the name counts"`
	Strict   bool   `json:"strict,omitempty" doc:"calls with a tag fail when no instance that has it can be reached; without it they go to instances without the tag"`
}

// ConditionRule sends calls that match to some instances.
type ConditionRule struct {
	Name   string `json:"name,omitempty" doc:"for people"`
	When   Match  `json:"when,omitzero" doc:"which calls"`
	To     Select `json:"to" doc:"which instances"`
	Strict bool   `json:"strict,omitempty" doc:"calls fail when no such instance can be reached; without it they go elsewhere"`
}

// SplitRule sends a share of the calls that match to some instances. The others go to instances that no share
// is for. The shares of all rules that match a call add up.
type SplitRule struct {
	Name    string  `json:"name,omitempty" doc:"for people"`
	When    Match   `json:"when,omitzero" doc:"which calls"`
	Percent float64 `json:"percent" doc:"the share, 0 to 100, in steps of 0.01"`
	By      string  `json:"by,omitempty" doc:"key of the metadata by whose value calls stay on one side; without it, and without a value, each call is drawn"`
	To      Select  `json:"to" doc:"which instances"`
	Strict  bool    `json:"strict,omitempty" doc:"the share fails when no such instance can be reached; without it it goes elsewhere"`
}

// InstanceRule overrides what instances say of themselves.
type InstanceRule struct {
	Name   string `json:"name,omitempty" doc:"for people"`
	Match  Select `json:"match" doc:"which instances"`
	Weight *int   `json:"weight,omitempty" doc:"1 to 1000000; 100 is what an instance has that says nothing"`
	State  string `json:"state,omitempty" doc:"up, draining or disabled; the latter two get no further calls and finish those they have"`
}

// MethodRule sets what the client's options would.
type MethodRule struct {
	Name        string   `json:"name,omitempty" doc:"for people"`
	When        Match    `json:"when,omitzero" doc:"which calls"`
	Timeout     Duration `json:"timeout,omitempty" doc:"how long a call may take, all attempts together; the caller's deadline counts where it is earlier"`
	Attempts    int      `json:"attempts,omitempty" doc:"how often a call is sent at most, 1 to 5"`
	Mode        string   `json:"mode,omitempty" doc:"fail mode: failover, failfast, failtry or backup"`
	Rate        *Rate    `json:"rate,omitempty" doc:"calls a second of each client; more are refused"`
	Concurrency int      `json:"concurrency,omitempty" doc:"calls in flight of each client; more are refused"`
}

// Rate is a limit of calls.
type Rate struct {
	PerSecond float64 `json:"per_second" doc:"calls a second"`
	Burst     int     `json:"burst,omitempty" doc:"calls at once; the calls of a second if left out"`
}

// MockRule answers in place of the instances.
type MockRule struct {
	Name    string          `json:"name,omitempty" doc:"for people"`
	When    Match           `json:"when,omitzero" doc:"which calls"`
	Failing bool            `json:"failing,omitempty" doc:"degrade: call, and answer only when that failed: it did not come through, was refused, or a handler ran out of time or said unavailable, resource exhausted, internal or data loss"`
	Reply   json.RawMessage `json:"reply,omitempty" doc:"the reply as JSON"`
	Error   *ErrorSpec      `json:"error,omitempty" doc:"the error"`
}

// FaultRule makes calls slow or lets them fail, until its time is over.
type FaultRule struct {
	Name    string     `json:"name,omitempty" doc:"for people"`
	When    Match      `json:"when,omitzero" doc:"which calls"`
	Percent float64    `json:"percent" doc:"the share of the calls, above 0 to 100, in steps of 0.01"`
	Delay   Duration   `json:"delay,omitempty" doc:"wait before the call, at most 1m"`
	Error   *ErrorSpec `json:"error,omitempty" doc:"fail with this error, and do not call"`
	Abort   bool       `json:"abort,omitempty" doc:"fail as if the connection had been lost: nobody knows whether the call ran"`
	Until   time.Time  `json:"until" doc:"when it ends, as 2026-01-02T15:04:05Z"`
}

// ErrorSpec is an error.
type ErrorSpec struct {
	Code    string `json:"code" doc:"such as unavailable or not found"`
	Message string `json:"message,omitempty" doc:"what the caller reads"`
}

// Duration is a time.Duration that is written like "250ms".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Document is a version of the rules of a service, as registries keep it.
type Document struct {
	Version uint64    `json:"version,omitempty" doc:"grows by one with every change"`
	Author  string    `json:"author,omitempty" doc:"who made the change"`
	Time    time.Time `json:"time,omitzero" doc:"when"`
	Comment string    `json:"comment,omitempty" doc:"why"`
	Rules   RuleSet   `json:"rules" doc:"the rules"`

	revision uint64 // in the registry
}
