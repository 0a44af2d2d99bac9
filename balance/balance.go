// Package balance chooses the endpoint of each attempt of a call. One file holds one algorithm.
package balance

// Request is what a picker may look at. The caller keeps ownership; a picker keeps nothing of it.
type Request struct {
	Method string
	Tried  []*Endpoint // endpoints of this call's earlier attempts, at most 5
}

// Picker chooses among a fixed list of endpoints. Pick is safe for concurrent use, does not block
// and does not allocate. It returns an endpoint that is not in r.Tried as long as there is one,
// else one that is; it returns nil only when the list is empty.
type Picker interface {
	Pick(r *Request) *Endpoint
}

// Balancer makes a Picker for a list of endpoints, which it may keep but not change. The client
// calls it again whenever the list or an instance in it changes.
type Balancer interface {
	// Name is the balancer's name in options and configuration: "p2c".
	Name() string
	Build(endpoints []*Endpoint) Picker
}
