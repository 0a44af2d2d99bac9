// Package progress shows how far a run is: with a bar on a terminal, and in plain lines elsewhere.
package progress

import (
	"fmt"
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/anser-rpc/anser/arena/internal/table"
)

// Progress shows how far a run is. Its methods are safe for concurrent use.
type Progress interface {
	// Begin says what comes next.
	Begin(what string)
	// Note writes a line that stays.
	Note(format string, args ...any)
	// Step says that one of the total is done.
	Step()
	// End takes the bar away.
	End()
}

// New returns a progress of total steps on out.
func New(out io.Writer, total int) Progress {
	if table.Terminal(out) {
		return newBar(out, total)
	}
	return &lines{out: out}
}

// lines is for what is not a terminal: a log gets the lines that stay, and no others.
type lines struct{ out io.Writer }

func (*lines) Begin(string)                      {}
func (*lines) Step()                             {}
func (*lines) End()                              {}
func (l *lines) Note(format string, args ...any) { fmt.Fprintf(l.out, format+"\n", args...) }

type bar struct {
	all  *mpb.Progress
	bar  *mpb.Bar
	what chan string
	now  string
}

func newBar(out io.Writer, total int) *bar {
	b := &bar{all: mpb.New(mpb.WithOutput(out), mpb.WithWidth(32)), what: make(chan string, 16)}
	b.bar = b.all.AddBar(int64(total),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d", decor.WCSyncSpace)),
		mpb.AppendDecorators(
			decor.AverageETA(decor.ET_STYLE_HHMMSS, decor.WC{C: decor.DextraSpace}),
			decor.Any(b.current),
		),
	)
	return b
}

// current is called by the goroutine that draws, and by no other.
func (b *bar) current(decor.Statistics) string {
	for {
		select {
		case b.now = <-b.what:
		default:
			return " " + b.now
		}
	}
}

func (b *bar) Begin(what string) {
	select {
	case b.what <- what:
	default: // nothing was drawn for a long time, so one line may be skipped
	}
}

func (b *bar) Step() { b.bar.Increment() }

func (b *bar) Note(format string, args ...any) { fmt.Fprintf(b.all, format+"\n", args...) }

func (b *bar) End() {
	b.bar.Abort(true)
	b.all.Wait()
}
