package cancelpace

import "testing"

// The queue does not grow with calls that were answered.
func TestAnsweredCallsLeaveTheQueue(t *testing.T) {
	var p Pacer
	for id := range uint64(100 * slack) {
		p.Add(id, 0)
		if id > 0 { // the first one is not answered
			p.Answered(id)
		}
		if n := len(p.queue); n > 2*slack {
			t.Fatalf("%d entries are in the queue after %d calls, and %d CANCELs wait", n, id, p.Owed())
		}
	}
	if id, ok := p.Next(1, 1); id != 0 || !ok {
		t.Error("the CANCEL of the call without an answer was lost")
	}
}
