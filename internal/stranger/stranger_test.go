package stranger_test

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

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
