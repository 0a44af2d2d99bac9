// Package balance chooses the endpoint of each attempt of a call. Each file holds one algorithm.
//
//	Random          random by weight
//	RoundRobin      in turn, whatever the weights
//	Weighted        smooth weighted round robin, exact shares
//	LeastActive     the fewest attempts in flight for its weight
//	P2C             the better of two by latency, attempts in flight and weight: the default
//	Ping            random by weight and latency
//	ConsistentHash  the same endpoint for the same key, while it has room
//	Maglev          the same endpoint for the same key, whatever its load
//	Sticky          one endpoint while it is available
//	LocalFirst      this machine, then this zone, then the others
//	Closest         by distance on the globe, the next nearest ones under load
//
// Pickers use the weights at the time they were built, and ignore the state of an instance: the
// client leaves out instances that want no calls.
package balance

import (
	"math/rand/v2"
	"slices"
)

// Request is a picker's input, and its Reason an output. It belongs to the caller; a picker must
// not keep any part of it. The zero value and nil describe a first attempt.
type Request struct {
	Method string
	Tried  []*Endpoint // endpoints of this call's earlier attempts, at most 5
	// Key identifies the subject of the call: calls with equal keys go together. It is the result
	// of Hash or any other number; 0 means that the caller set none.
	Key uint64
	// Payload is the encoded request, used in place of a missing key.
	Payload []byte
	// Reason says why Pick returned its endpoint, if the picker sets it.
	Reason Reason
}

// KeyHash returns the hash for algorithms that keep calls together, spread over all 64 bits: of
// the key if there is one, else of the method and the payload, else, without either, a random
// number. It is the same in every process, as it does not depend on memory addresses.
func (r *Request) KeyHash() uint64 {
	switch {
	case r == nil:
		return rand.Uint64()
	case r.Key != 0:
		return scatter(r.Key)
	case r.Payload != nil:
		return wyhash(r.Payload, Hash(r.Method))
	}
	return rand.Uint64()
}

// HasTried reports whether an earlier attempt of the call went to e.
func (r *Request) HasTried(e *Endpoint) bool {
	return r != nil && len(r.Tried) > 0 && slices.Contains(r.Tried, e)
}

// Picker chooses among a fixed list of endpoints. Pick is safe for concurrent use, does not block
// and does not allocate. It returns an endpoint that is not in r.Tried if there is one, otherwise
// one that is; it returns nil only if the list is empty.
type Picker interface {
	Pick(r *Request) *Endpoint
}

// Balancer makes a Picker for a list of endpoints, which it may keep but not modify. The client
// calls Build again whenever the list or an instance in it changes, even for a list of one. A
// balancer whose configuration may be invalid has a method Validate() error, which anser.Balancer
// calls. A balancer that works equally well with any part of the instances has a method AnyPart()
// bool that returns true: of a service with many instances it receives only as many as the client
// needs (anser.Subset). A balancer that maps keys to instances, or prefers the nearest instance,
// must not have it. Package balancetest is the conformance suite of Balancers.
type Balancer interface {
	// Name is the balancer's name in options and configuration: "p2c".
	Name() string
	Build(endpoints []*Endpoint) Picker
}

// algorithm is a Balancer with a name and a function that builds a picker for two or more
// endpoints.
type algorithm struct {
	name  string
	build func(endpoints []*Endpoint) Picker
	any   bool // result of AnyPart
}

func (a algorithm) Name() string { return a.name }

// AnyPart reports whether the balancer works with any part of the instances; see Balancer.
func (a algorithm) AnyPart() bool { return a.any }

func (a algorithm) Build(endpoints []*Endpoint) Picker {
	if len(endpoints) < 2 {
		return few(endpoints)
	}
	return a.build(endpoints)
}

// few is the picker for at most one endpoint: there is no choice.
type few []*Endpoint

func (f few) Pick(r *Request) *Endpoint {
	if len(f) == 0 {
		return nil
	}
	return r.because(PickedOnly, f[0])
}

// untriedFrom returns the first endpoint from index i on, cyclically, that the call has not tried,
// or the one at i if there is none. It looks at one endpoint more than were tried, unless the list
// contains an endpoint twice.
func untriedFrom(endpoints []*Endpoint, i int, r *Request) *Endpoint {
	for j := i; ; {
		if e := endpoints[j]; !r.HasTried(e) {
			return e
		}
		if j++; j == len(endpoints) {
			j = 0
		}
		if j == i {
			return endpoints[i]
		}
	}
}
