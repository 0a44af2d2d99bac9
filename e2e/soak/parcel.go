package main

import (
	"bytes"
	crand "crypto/rand"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/anser-rpc/anser"
)

// A Parcel is a request or its reply. Data follows from ID and from the direction, so that bytes
// of another call are found out wherever they turn up.
type Parcel struct {
	ID   string
	Data []byte
	Seq  int // of a message in a stream
	Do   Wish
}

// A Wish tells the handler what to do with a request.
type Wish struct {
	Want  int           // bytes of data in the reply
	Hold  time.Duration // before the reply
	Fail  bool          // answer with an error that names the ID
	Panic bool
}

// The methods of a server. The last two belong to its clients.
const (
	echo       anser.Method[Parcel, Parcel]       = "Soak.Echo"
	echoAgain  anser.Method[Parcel, Parcel]       = "Soak.EchoAgain" // is idempotent
	echoRaw    anser.Method[[]byte, []byte]       = "Soak.EchoRaw"
	drop       anser.OnewayMethod[Parcel]         = "Soak.Drop"
	talk       anser.StreamMethod[Parcel, Parcel] = "Soak.Talk"
	callMe     anser.Method[Parcel, Parcel]       = "Soak.CallMe" // calls its caller before it answers
	shout      anser.OnewayMethod[Parcel]         = "Soak.Shout"  // to all clients in the room
	clientEcho anser.Method[Parcel, Parcel]       = "Client.Echo"
	clientHear anser.OnewayMethod[Parcel]         = "Client.Hear"
)

const idSize = 26 // of crypto/rand.Text

// newID returns an id that no other call has.
func newID() string { return crand.Text() }

// The directions.
const (
	asked    = "asked"
	answered = "answered"
)

// fill returns n bytes that follow from the id and the direction. Half of them repeat, so that
// they can be compressed.
func fill(id, direction string, n int) []byte {
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte(direction))
	x := h.Sum64()
	out := make([]byte, n)
	for i := range out {
		if i%16 < 8 {
			out[i] = byte(x >> (i % 8 * 8))
			continue
		}
		if i%16 == 8 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		out[i] = id[i%len(id)]
	}
	return out
}

// request returns a parcel with data of a size that is drawn at random.
func request(r *rand.Rand, do Wish) *Parcel {
	id := newID()
	return &Parcel{ID: id, Data: fill(id, asked, size(r)), Do: do}
}

// size is usually small, and sometimes so large that a message must be split.
func size(r *rand.Rand) int {
	switch n := r.IntN(100); {
	case n < 60:
		return r.IntN(200)
	case n < 90:
		return r.IntN(4 << 10)
	case n < 99:
		return r.IntN(64 << 10)
	default:
		return r.IntN(600 << 10)
	}
}

// check returns an error if a parcel received in that direction is wrong.
func (p *Parcel) check(direction string) error {
	if len(p.ID) != idSize {
		return fmt.Errorf("%s: the id is %q", direction, p.ID)
	}
	return compare(p.Data, fill(p.ID, direction, len(p.Data)))
}

// answers returns an error if the parcel is not the reply to the request.
func (p *Parcel) answers(to *Parcel) error {
	if p == nil {
		return fmt.Errorf("no error and no reply to %s", to.ID)
	}
	if p.ID != to.ID || p.Seq != to.Seq {
		return fmt.Errorf("the reply to %s/%d is that of %s/%d", to.ID, to.Seq, p.ID, p.Seq)
	}
	if len(p.Data) != to.Do.Want {
		return fmt.Errorf("the reply to %s has %d bytes: want %d", to.ID, len(p.Data), to.Do.Want)
	}
	return p.check(answered)
}

// reply returns the parcel that answers p.
func (p *Parcel) reply() *Parcel {
	return &Parcel{ID: p.ID, Seq: p.Seq, Data: fill(p.ID, answered, p.Do.Want)}
}

func compare(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("byte %d of %d is %#x: want %#x", i, len(got), got[i], want[i])
		}
	}
	return fmt.Errorf("%d bytes: want %d", len(got), len(want))
}
