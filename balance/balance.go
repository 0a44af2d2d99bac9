// Package balance chooses the endpoint of each attempt of a call. One file holds one algorithm.
//
//	Random          by weight at random
//	RoundRobin      one after the other, whatever the weights
//	Weighted        smooth weighted round robin, exact shares
//	LeastActive     the fewest attempts in flight for its weight
//	P2C             the better of two by latency, attempts in flight and weight: the default
//	Ping            by weight and latency at random
//	ConsistentHash  the same endpoint for the same key, as long as that has room
//	Maglev          the same endpoint for the same key, whatever it has to do
//	Sticky          one endpoint as long as it is there
//	LocalFirst      this machine, then this zone, then the others
//	Closest         by distance on the globe, the next ones when the near ones are busy
//
// Pickers look at weights as they were when they were built, and do not look at an instance's
// state: the client leaves out those that do not want calls.
package balance

import (
	"math/rand/v2"
	"slices"
)

// Request is what a picker may look at. The caller keeps ownership; a picker keeps nothing of it.
// The zero value and nil are a first attempt.
type Request struct {
	Method string
	Tried  []*Endpoint // endpoints of this call's earlier attempts, at most 5
	// Key says what the call is about: calls with equal keys belong together. It is a hash (of Hash)
	// or any other number; 0 means that the caller gave none.
	Key uint64
	// Payload is the encoded request, which stands for the key where there is none.
	Payload []byte
}

// KeyHash returns the number by which algorithms go that keep calls together, spread over all 64
// bits: that of the key, else of the method and the payload, else, with neither, a random one. It is
// the same in every process, as nothing in it depends on where a value lies in memory.
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
// and does not allocate. It returns an endpoint that is not in r.Tried as long as there is one,
// else one that is; it returns nil only when the list is empty.
type Picker interface {
	Pick(r *Request) *Endpoint
}

// Balancer makes a Picker for a list of endpoints, which it may keep but not change. The client
// calls it again whenever the list or an instance in it changes, for a list of one too. One that
// cannot work has a method Validate() error, which anser.Balancer asks. One that does its work as well with
// a part of the instances, whichever they are, has a method AnyPart() bool that says so: of a service with
// many instances it is given as many as the client needs (anser.Subset). One that looks for the place of a key, or for the
// nearest instance, must not say so. Package balancetest is the suite that every Balancer passes.
type Balancer interface {
	// Name is the balancer's name in options and configuration: "p2c".
	Name() string
	Build(endpoints []*Endpoint) Picker
}

// algorithm is a Balancer made of its name and of how it builds a picker for two endpoints or
// more.
type algorithm struct {
	name  string
	build func(endpoints []*Endpoint) Picker
	any   bool // whether any part of the instances will do
}

func (a algorithm) Name() string { return a.name }

// AnyPart reports whether the balancer does its work with any part of the instances too; see Balancer.
func (a algorithm) AnyPart() bool { return a.any }

func (a algorithm) Build(endpoints []*Endpoint) Picker {
	if len(endpoints) < 2 {
		return few(endpoints)
	}
	return a.build(endpoints)
}

// few is the picker of at most one endpoint, which leaves nothing to choose.
type few []*Endpoint

func (f few) Pick(*Request) *Endpoint {
	if len(f) == 0 {
		return nil
	}
	return f[0]
}

// untriedFrom returns the first endpoint from index i on, around the end, that the call has not
// tried, or the one at i when there is none. It looks at one endpoint more than were tried, unless
// the list names an endpoint twice.
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
