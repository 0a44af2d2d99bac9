package ansertest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)         { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

func TestCheckLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that the check takes no time
		r := &recorder{TB: t}
		ansertest.CheckLeaks(r)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			<-stop
		}()
		r.cleanups[0]()
		if len(r.errors) != 1 || !strings.Contains(r.errors[0], "TestCheckLeaks") {
			t.Fatalf("a leak was not found: %q", r.errors)
		}
		close(stop)
		<-ended

		r = &recorder{TB: t}
		ansertest.CheckLeaks(r)
		r.cleanups[0]()
		if len(r.errors) != 0 {
			t.Fatal(r.errors)
		}
	})
}

// A goroutine that ends late is not a leak.
func TestCheckLeaksIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		ansertest.CheckLeaks(r)
		go time.Sleep(10 * time.Second)
		r.cleanups[0]()
		if len(r.errors) != 0 {
			t.Fatal(r.errors)
		}
	})
}
