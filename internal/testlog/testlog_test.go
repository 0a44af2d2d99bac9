package testlog_test

import (
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBuffer(t *testing.T) {
	var b testlog.Buffer
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { b.Logger().Info("hello") })
	}
	taken := b.Take()
	wg.Wait()
	if n := strings.Count(taken+b.String(), "msg=hello\n"); n != 8 {
		t.Errorf("%d lines, want 8: %s and %s", n, taken, b.String())
	}
	if got := b.Take() + b.Take(); strings.Count(taken+got, "\n") != 8 {
		t.Errorf("taken twice: %s", got)
	}
}
