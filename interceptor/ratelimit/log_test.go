package ratelimit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
	"github.com/anser-rpc/anser/internal/testlog"
)

// logged returns a client of a server with the limits, and its log.
func logged(t *testing.T, opts ...ratelimit.Option) (*anser.Client, *testlog.Buffer) {
	log := new(testlog.Buffer)
	l, err := ratelimit.New(append(opts, ratelimit.Logger(log.Logger()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	network := new(ansertest.Network)
	c, _, _ := serveOn(t, l, network.Listen("a:1"), anser.Dialer(network.Dial))
	return c, log
}

// wantLine takes the log, which must be one line with these parts.
func wantLine(t *testing.T, log *testlog.Buffer, parts ...string) {
	t.Helper()
	text := log.Take()
	if strings.Count(text, "\n") != 1 {
		t.Errorf("want one line:\n%s", text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in the log:\n%s", part, text)
		}
	}
}

// A bank that is gone is one line for the buckets of all callers, and so is its return.
func TestBankIsLoggedOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{fails: true, tokens: make(map[string]int)}
		c, log := logged(t, ratelimit.Caller(ratelimit.ByMetadata("tenant"), ratelimit.Rate{PerSecond: 1000, Burst: 100}),
			ratelimit.Through(b), ratelimit.Instances(3))
		all := func() {
			for i := range 20 {
				try(t, as(fmt.Sprint(i)), c, "A.Do")
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
		}
		for range 100 {
			all()
		}
		wantLine(t, log, "level=WARN", "does not answer", "bucket=caller/0", "instances=3", "failures=1", `err="the bank is closed"`)
		b.mu.Lock()
		b.fails = false
		b.mu.Unlock()
		time.Sleep(5 * time.Second) // until each bucket asks again
		all()
		wantLine(t, log, "level=INFO", "answers again", "bucket=caller/")
	})
}

// A bank that fails and answers in turns is not more than two lines a minute.
func TestBankThatFlapsIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{tokens: make(map[string]int)}
		c, log := logged(t, ratelimit.Server(ratelimit.Rate{PerSecond: 1000, Burst: 10_000}), ratelimit.Through(b))
		began := time.Now()
		for i := 0; time.Since(began) < 3*time.Minute-time.Second; i++ {
			b.mu.Lock()
			b.fails = i%2 == 0
			b.mu.Unlock()
			time.Sleep(5 * time.Second) // until it is asked again, and the tokens have expired
			try(t, context.Background(), c, "A.Do")
			synctest.Wait()
		}
		text := log.String()
		if gone, back := strings.Count(text, "does not answer"), strings.Count(text, "answers again"); gone != 3 || back != 3 {
			t.Errorf("%d and %d lines in three minutes, want 3 and 3:\n%s", gone, back, text)
		}
		if !strings.Contains(text, "failures=6") && !strings.Contains(text, "failures=7") {
			t.Errorf("no line has the number of failures since the one before:\n%s", text)
		}
	})
}

// A full table of callers is one line a minute, however many names callers invent.
func TestFullTableIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := logged(t, ratelimit.Caller(ratelimit.ByMetadata("tenant"), ratelimit.Rate{PerSecond: never, Burst: 2}), ratelimit.MaxCallers(2))
		invent := func(from, n int) {
			for i := range n {
				try(t, as(fmt.Sprint(from+i)), c, "A.Do")
			}
		}
		invent(0, 2)
		if text := log.String(); text != "" {
			t.Errorf("a table that has room is in the log: %s", text)
		}
		invent(2, 50)
		wantLine(t, log, "level=WARN", "ratelimit.MaxCallers", "callers=2", "calls=1\n")
		time.Sleep(time.Minute)
		invent(100, 5)
		wantLine(t, log, "calls=50\n")
	})
}
