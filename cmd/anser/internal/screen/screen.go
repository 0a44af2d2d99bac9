// Package screen writes to a terminal with colours and a block of lines that is redrawn in place,
// and plain lines to all other outputs.
package screen

import (
	"bytes"
	"io"
	"os"
	"slices"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// Screen is the output of a command for people. It is not safe for concurrent use.
type Screen struct {
	out      io.Writer // supports the available colours
	drawn    []int     // the widths of the lines of the block
	terminal bool
	size     func() (width, height int) // of the terminal
}

// New returns a screen on w. Colours are used on terminals that support them, unless NO_COLOR is
// set.
func New(w io.Writer) *Screen {
	s := &Screen{out: colorprofile.NewWriter(w, os.Environ())}
	if f, ok := w.(term.File); ok && term.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb" {
		s.terminal = true
		s.size = func() (int, int) {
			width, height, err := term.GetSize(f.Fd())
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		}
	}
	return s
}

// Terminal reports whether lines can be redrawn.
func (s *Screen) Terminal() bool { return s.terminal }

// Size returns the size of the terminal; 0 if there is none.
func (s *Screen) Size() (width, height int) {
	if !s.terminal {
		return 0, 0
	}
	return s.size()
}

// Print writes permanent lines, in place of the block.
func (s *Screen) Print(lines ...string) { s.Draw(lines, nil) }

const (
	beginUpdate = "\x1b[?2026h" // the terminal shows the following output at once,
	endUpdate   = "\x1b[?2026l" // up to here
	eraseBelow  = "\x1b[J"
)

// Draw replaces the block, after writing permanent lines. Without a terminal the block is written
// like the other lines.
func (s *Screen) Draw(lines, block []string) {
	var b bytes.Buffer
	if !s.terminal {
		for _, line := range slices.Concat(lines, block) {
			b.WriteString(line + "\n")
		}
		s.out.Write(b.Bytes())
		return
	}
	width, height := s.Size()
	if len(block) > height-1 {
		block = block[:max(height-1, 0)]
	}
	b.WriteString(beginUpdate)
	if up := s.rows(width); up > 0 {
		b.WriteString("\r" + ansi.CursorUp(up) + eraseBelow)
	}
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	s.drawn = s.drawn[:0]
	for _, line := range block {
		line = ansi.Truncate(line, width, "…")
		s.drawn = append(s.drawn, ansi.StringWidth(line))
		b.WriteString(line + "\n")
	}
	b.WriteString(endUpdate)
	s.out.Write(b.Bytes())
}

// rows is the number of rows that the block takes now: a terminal that has become narrower wraps
// lines.
func (s *Screen) rows(width int) int {
	n := 0
	for _, w := range s.drawn {
		n += max((w+width-1)/width, 1)
	}
	return n
}
