package load

import (
	"testing"
	"time"
)

// NapInBubble makes the pacer use the clock of a synctest bubble until the test ends.
func NapInBubble(t testing.TB) {
	pacerNap = time.Sleep
	t.Cleanup(func() { pacerNap = nap })
}
