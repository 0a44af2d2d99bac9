package proc

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	// Of a program that calls itself "a) b", with what proc_pid_stat(5) says of each field.
	const text = "42 (a) b) S 7 42 42 0 -1 4194560 2078 0 0 0 150 250 3 4 20 0 9 0 101 1720000 500 18446744073709551615 1 1 0"
	s, err := parseStat([]byte(text))
	want := stat{parent: 7, own: 4 * time.Second, children: 70 * time.Millisecond, resident: 500 * int64(os.Getpagesize())}
	if err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "42 (a) S 7", "42 (a) S x 42 42 0 -1 4194560 2078 0 0 0 150 250 3 4 20 0 9 0 101 1720000 500 1"} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

func TestParseIO(t *testing.T) {
	got, err := parseIO("rchar: 6976\nwchar: 12\nsyscr: 10\nsyscw: 3\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n")
	if err != nil || got != (io{reads: 10, writes: 3, readBytes: 6976, writtenBytes: 12}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseIO("rchar: 1\n"); err == nil {
		t.Error("a part is enough")
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 3 990385 5545 0 28436 1522 0 0\ncpu0 1 2 3 4\n")
	if err != nil || got != 1230*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseBusy("intr 1\n"); err == nil {
		t.Error("anything will do")
	}
}

func TestParseWire(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000 10    0    0    0     0          0         0 1000 10    0    0    0     0       0          0
arena0: 5000     100    0    0    0     0          0         0  7000      50    0    0    0     0       0          0
`
	for name, want := range map[string]int64{"lo": 1000, "arena0": 12_000 - 14*150} {
		if got, err := parseWire(text, name); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	if _, err := parseWire(text, "eth0"); err == nil {
		t.Error("an interface that is not there has bytes")
	}
}

func TestDescendants(t *testing.T) {
	parents := map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 1, 7: 4}
	got := descendants(2, parents)
	if len(got) != 5 || got[0] != 2 || got[1] != 3 || got[4] != 7 {
		t.Errorf("%v", got)
	}
}

func TestSelf(t *testing.T) {
	if load, err := Load(); err != nil || load < 0 {
		t.Errorf("load %v, %v", load, err)
	}
	a, err := clock(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	b := a
	// On a busy machine it may take a while until this process has used so much.
	for late := time.Now().Add(time.Minute); err == nil && b-a < time.Millisecond && time.Now().Before(late); {
		b, err = clock(os.Getpid())
	}
	if err != nil || b-a < time.Millisecond {
		t.Errorf("from %v to %v, %v", a, b, err)
	}
	if _, err := clock(1 << 24); err == nil {
		t.Error("a process that is not there has a clock")
	}
}
