package load

import (
	"testing"
	"time"
)

// NapInBubble has the pacer wait on the clock of a synctest bubble until the test ends.
func NapInBubble(t testing.TB) {
	pacerNap = time.Sleep
	t.Cleanup(func() { pacerNap = nap })
}
