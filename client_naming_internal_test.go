package anser

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// The successor of a connection that has ended meanwhile is the only one, so it can be late:
// callers then go to another instance and do not wait for it.
func TestSuccessorsCanBeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(new(pool), hostOptions{connectTimeout: time.Minute}, func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, errors.New("a black hole")
		})
		if !h.succeed(&callerHalf{conn: new(conn)}) {
			t.Fatal("no successor is being made")
		}
		began := time.Now()
		_, fault := h.waitConn(t.Context(), 0, false, false, nil)
		if took := time.Since(began); fault == nil || took > time.Second {
			t.Errorf("a caller with other instances waited for %v: %v", took, fault)
		}
		h.close()
	})
}
