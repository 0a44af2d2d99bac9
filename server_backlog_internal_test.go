package anser

import (
	"net"
	"runtime"
	"testing"
	"time"
)

func TestBacklog(t *testing.T) {
	const ms = int64(time.Millisecond)
	var b backlog
	queue := 0
	read := func(now, n int64) int64 {
		b.note(now, n, func() int { return queue })
		return b.waited / ms
	}
	queue = 100_000
	for i, step := range []struct{ at, n, want int64 }{
		{0, 50_000, 0},          // 100,000 bytes behind it were there at 0
		{10 * ms, 50_000, 10},   // these had arrived by then
		{30 * ms, 50_000, 30},   // and these
		{31 * ms, 50_000, 21},   // these came after 0, but before 10 ms
		{200 * ms, 50_000, 170}, // the last ones of which that is known
		{210 * ms, 10, 10},      // before 200 ms
		{220 * ms, 50_000, 0},   // the socket was empty
	} {
		if got := read(step.at, step.n); got != step.want {
			t.Errorf("read %d: waited %d ms, want %d", i, got, step.want)
		}
	}
}

func TestUnread(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems are not asked")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	u, ok := newUnread(in)
	if !ok {
		t.Fatal("a TCP connection cannot be asked")
	}
	if n := u.bytes(); n != 0 {
		t.Errorf("%d bytes wait in a new connection", n)
	}
	if _, err := out.Write(make([]byte, 12_345)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); u.bytes() != 12_345; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes wait after a minute, want 12345", u.bytes())
		}
	}
	pipe, _ := net.Pipe()
	if _, ok := newUnread(pipe); ok {
		t.Error("a pipe can be asked")
	}
}
