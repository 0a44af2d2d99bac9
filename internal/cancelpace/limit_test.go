package cancelpace_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/cancelpace"
)

func TestLimit(t *testing.T) {
	var l cancelpace.Limit
	n := 0
	for l.Allow(second, maxCalls) {
		n++
	}
	if n < cancelpace.Rate || n > 10*cancelpace.Rate {
		t.Errorf("%d CANCELs are allowed at once", n)
	}
	if l.Allow(second+1, maxCalls) {
		t.Error("a client may go on at once")
	}
	if !l.Allow(10*second, maxCalls) {
		t.Error("a client may not go on after ten seconds")
	}
	if !l.Allow(0, maxCalls) {
		t.Error("an earlier time fills the bucket")
	}
}
