package workload

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{time.Nanosecond, time.Millisecond, 20 * time.Millisecond} {
		began := time.Now()
		if err := a.wait(d); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < d {
			t.Errorf("waited for %v only %v", d, took)
		}
	}
	waited := make(chan error)
	go func() { waited <- a.wait(time.Hour) }()
	a.close()
	if err := <-waited; err == nil {
		t.Error("the end of an hour after close")
	}
	if err := a.wait(time.Nanosecond); err == nil {
		t.Error("waited after close")
	}
}
