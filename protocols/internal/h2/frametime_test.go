package h2_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// A client that sends without a pause keeps its connection, also if each of its writes ends within
// a frame: the time for the rest of a frame begins anew with each of them.
func TestFramesThatEndInAnotherWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, frames, _ := inBubble(t, h2.Config{FrameTime: time.Second}, echo)
		c.frame(headers, endHeaders, 1, c.header())
		for range 40 {
			c.frame(data, 0, 1, make([]byte, 91))
		}
		c.frame(data, endStream, 1, make([]byte, 91))
		all := append([]byte(nil), c.out.Bytes()...)
		for len(all) > 0 {
			n := min(70, len(all))
			c.out.Reset()
			c.out.Write(all[:n])
			all = all[n:]
			c.write()
			time.Sleep(300 * time.Millisecond)
		}
		if n, _ := count(frames, headers); n != 1 || t.Failed() {
			t.Errorf("%d answers, want 1", n)
		}
	})
}

// The rest of one frame must arrive in time, whatever came before it.
func TestRestOfAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, ended := inBubble(t, h2.Config{FrameTime: time.Second}, echo)
		c.frame(headers, endHeaders, 1, c.header())
		c.frame(data, 0, 1, make([]byte, 91))
		c.frame(data, 0, 1, make([]byte, 91))
		c.out.Truncate(c.out.Len() - 1)
		c.write()
		time.Sleep(2 * time.Second) // half of it for the client to read why
		synctest.Wait()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the connection ended without an error")
			}
		default:
			t.Error("the connection has not ended")
		}
	})
}
