package screen

import (
	"bytes"
	"testing"
)

func TestPlain(t *testing.T) {
	var b bytes.Buffer
	s := New(&b)
	if w, h := s.Size(); s.Terminal() || w != 0 || h != 0 {
		t.Errorf("a buffer is a terminal of %d × %d", w, h)
	}
	s.Draw([]string{"event"}, []string{"\x1b[31mblock\x1b[0m"})
	s.Draw(nil, []string{"block"})
	s.Print("end")
	if got, want := b.String(), "event\nblock\nblock\nend\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInPlace(t *testing.T) {
	var b bytes.Buffer
	width, height := 10, 5
	s := &Screen{out: &b, terminal: true, size: func() (int, int) { return width, height }}
	step := func(what string, lines, block []string, want string) {
		t.Helper()
		b.Reset()
		s.Draw(lines, block)
		if got := b.String(); got != beginUpdate+want+endUpdate {
			t.Errorf("%s: %q, want %q", what, got, beginUpdate+want+endUpdate)
		}
	}
	step("first", nil, []string{"one", "two"}, "one\ntwo\n")
	step("again, with an event", []string{"event"}, []string{"a longer line than fits"}, "\r\x1b[2A\x1b[Jevent\na longer …\n")
	width = 4 // the line of 10 columns now takes 3 rows
	step("narrower", nil, []string{"1", "2", "3", "4", "5"}, "\r\x1b[3A\x1b[J1\n2\n3\n4\n")
	step("end", []string{"end"}, nil, "\r\x1b[4A\x1b[Jend\n")
	step("after the end", []string{"more"}, nil, "more\n")
}
