package cluster

import "github.com/anser-rpc/anser/internal/mono"

// Host is one address with the connections to it, which clients share. Its methods are safe for
// concurrent use and do not block. Most are called with the lock of a cluster held, so they must
// not call the cluster.
type Host interface {
	// Reach returns what is known of the host.
	Reach() Reach
	// Connected is Reach().Ready without a lock.
	Connected() bool
	// Silent reports whether connections exist on which the host does not answer pings.
	Silent() bool
	// Judge makes the host find out from now on whether it is silent.
	Judge()
	// SetSpare says whether connections without calls may be closed early.
	SetSpare(spare bool)
	// RedialNow connects at once if the host waits for its next attempt to connect.
	RedialNow()
	// Seen returns what a hunt that began at a time needs to know.
	Seen(began mono.Time) Sight
	// Try starts connecting for a hunt that began at a time, once per hunt.
	Try(began mono.Time)
}

// Reach is what is known about reaching a host.
type Reach struct {
	Ready  bool // a connection takes calls
	Failed bool // the last attempt to connect failed, or the last connection was lost early
	Late   bool // connecting takes longer than usual
	Met    bool // there was a connection at some time
}

// Down reports whether the host could not be reached when it was last tried.
func (r Reach) Down() bool { return r.Failed && !r.Ready }

// Missing reports whether calls should not go to the host while others are reachable.
func (r Reach) Missing() bool { return !r.Ready && (r.Failed || r.Late) }

// Sight is a host as a hunt sees it.
type Sight struct {
	State    HostState
	Tried    mono.Time // time of the last failed attempt to connect
	Err      error     // error of that attempt; nil: none failed
	Obstacle int       // how lasting the cause of Err is, on a scale of the client
}

// HostState is the state of a host for a hunt.
type HostState uint8

// The states of a host.
const (
	Ready   HostState = iota // has a connection
	Dialing                  // a connection is being made, by this side or by the peer
	Idle                     // may be dialed
	Failed                   // a recent attempt failed
)
