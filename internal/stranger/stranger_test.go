package stranger_test

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/stranger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBeginsHTTP(t *testing.T) {
	for begin, want := range map[string][2]bool{
		"": {false, true}, "G": {false, true}, "GET": {false, true}, "GET ": {true, true}, "POST": {true, true}, "PRI ": {true, true},
		"GETX": {false, false}, "get ": {false, false}, "{": {false, false},
	} {
		if is, may := stranger.BeginsHTTP([]byte(begin)); is != want[0] || may != want[1] {
			t.Errorf("%q: %v, %v", begin, is, may)
		}
	}
}

func TestAnswer(t *testing.T) {
	var b bytes.Buffer
	stranger.Answer(&b, "text\n")
	if got := b.String(); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.HasSuffix(got, "Content-Length: 5\r\n\r\ntext\n") {
		t.Errorf("%q", got)
	}
}

func TestSeldom(t *testing.T) {
	var s stranger.Seldom
	if n := s.Note(1); n != 1 {
		t.Errorf("the first event logs %d", n)
	}
	for range 3 {
		if n := s.Note(2); n != 0 {
			t.Errorf("an event soon after logs %d", n)
		}
	}
	if n := s.Note(mono.Time(1).Add(2 * 60e9)); n != 4 {
		t.Errorf("an event much later logs %d, want 4", n)
	}
}
