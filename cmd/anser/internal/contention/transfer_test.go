package contention_test

import (
	"runtime"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/contention"
)

func TestTransfer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if d := contention.Transfer(); d <= 0 {
		t.Errorf("a line takes %v from one processor to another", d)
	}
	runtime.GOMAXPROCS(1)
	if d := contention.Transfer(); d != 0 {
		t.Errorf("%v with one processor, want 0", d)
	}
}
