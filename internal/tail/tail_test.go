package tail

import "testing"

func TestBuffer(t *testing.T) {
	b := New(8)
	b.Write([]byte("\n one"))
	if got := b.String(); got != "one" {
		t.Errorf("%q", got)
	}
	b.Write([]byte("é, two!\n"))
	if got := b.String(); got != ", two!" { // 8 bytes begin with the second half of é
		t.Errorf("%q", got)
	}
}
