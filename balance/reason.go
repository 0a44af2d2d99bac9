package balance

import "fmt"

// Reason says why an endpoint was picked. A picker sets it in the [Request]; the client sets the
// ones from PickedOnly on. It is for logs, traces and pages: nothing depends on it.
type Reason uint8

// The reasons.
const (
	Unexplained       Reason = iota // the balancer gives none
	PickedInTurn                    // it was the endpoint's turn
	PickedByWeight                  // drawn by weight
	PickedByLatency                 // drawn by weight and latency
	PickedBetter                    // the better of two by latency and attempts in flight
	PickedLeastLoaded               // the fewest attempts in flight for its weight
	PickedToProbe                   // to learn how fast it is now
	PickedByKey                     // the endpoint of the key of the call
	PickedNextToKey                 // that one is full or was tried: the next one
	PickedKept                      // the endpoint that the client stays with
	PickedOnHost                    // on the same machine
	PickedInZone                    // in the same zone
	PickedNearest                   // the nearest
	PickedFarther                   // nearer ones are busy, were tried or do not exist
	PickedInstead                   // the call has tried the one that it would go to

	PickedOnly      // no other one can be picked
	PickedForTrial  // a trial of an ejected instance, or of one whose breaker is half open
	PickedByCaller  // the caller named the instance
	PickedAgain     // the same one as before: the fail mode or the idempotency key allows no other
	PickedConnected // the attempt before found no connection: one that has a connection
	PickedForBackup // second attempt of the fail mode Backup
	PickedForFork   // one of the attempts of the fail mode Fork
)

var reasonTexts = [...]string{
	"unexplained", "in turn", "by weight", "by latency", "better of two", "least loaded", "to probe", "by key", "next to key", "kept", "same host", "same zone",
	"nearest", "farther", "instead", "the only one", "trial", "named by the caller", "again", "connected", "backup", "fork",
}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// MarshalText returns the reason in words, for JSON and logs.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the output of MarshalText. Words of a later version are [Unexplained].
func (r *Reason) UnmarshalText(text []byte) error {
	*r = Unexplained
	for i, known := range reasonTexts {
		if known == string(text) {
			*r = Reason(i)
		}
	}
	return nil
}

// byKey sets the reason for e, where owner is the endpoint of the key.
func (r *Request) byKey(e, owner *Endpoint) *Endpoint {
	if e != owner {
		return r.because(PickedNextToKey, e)
	}
	return r.because(PickedByKey, e)
}

// because sets the reason and returns e. r may be nil.
func (r *Request) because(why Reason, e *Endpoint) *Endpoint {
	if r != nil {
		r.Reason = why
	}
	return e
}
