package record

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
)

// faulty runs a recorder whose files are made by create, in a bubble.
func faulty(t *testing.T, create func(string) (io.WriteCloser, error)) (*Recorder, *strings.Builder) {
	t.Helper()
	files, err := openRing(t.TempDir(), DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	if create != nil {
		files.create = create
	}
	logged := new(strings.Builder)
	return start(Options{Dir: files.dir, Share: 1, PerSecond: 1 << 30, MaxMessage: DefaultMaxMessage, Logger: slog.New(slog.NewTextHandler(logged, nil))}, files), logged
}

// call makes a call as a server would.
func (r *Recorder) call(t *testing.T, size int) {
	t.Helper()
	f := r.intercept(func(_ context.Context, inv *anser.Invocation) error {
		inv.Reply = new("reply")
		return nil
	})
	if !r.choose("A.B") {
		t.Error("a call was not chosen")
	}
	text := strings.Repeat("x", size)
	if err := f(t.Context(), &anser.Invocation{Method: "A.B", Server: true, Request: &text}); err != nil {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		full.Store(true)
		r, logged := faulty(t, func(name string) (io.WriteCloser, error) {
			if full.Load() {
				return os.OpenFile("/dev/full", os.O_WRONLY, 0)
			}
			return createFile(name)
		})
		for range 5 {
			r.call(t, 100)
			time.Sleep(3 * time.Second)
		}
		if s := r.Stats(); s.Failed != 5 || s.Recorded != 0 {
			t.Errorf("%+v", s)
		}
		full.Store(false)
		r.call(t, 100)
		time.Sleep(3 * time.Second)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := r.Stats(); s.Failed != 5 || s.Recorded != 1 {
			t.Errorf("%+v", s)
		}
		if text := logged.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "no space left") || !strings.Contains(text, "again") {
			t.Errorf("logged:\n%s", text)
		}
		in, err := Open(r.o.Dir)
		if err != nil || in.Index().Calls != 1 {
			t.Fatal(in, err)
		}
		in.Close()
	})
}

// stuck is a file on a disk that does not answer until it is released.
type stuck struct {
	io.WriteCloser
	released chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.released
	return s.WriteCloser.Write(p)
}

// A disk that does not answer costs memory up to a bound, and no call waits for it.
func TestSlowDisk(t *testing.T) {
	released := make(chan struct{})
	r, _ := faulty(t, func(name string) (io.WriteCloser, error) {
		f, err := createFile(name)
		return &stuck{f, released}, err
	})
	const size, calls = 100 << 10, 1000 // 100 MB
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range calls / 4 {
				r.call(t, size)
			}
		})
	}
	wg.Wait()
	if got := r.pending.Load(); got > maxQueuedBytes+5*size {
		t.Errorf("%d bytes wait", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed with %v", err)
	}
	close(released)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := r.Stats()
	if s.Recorded+s.Dropped != calls || s.Dropped < calls/2 || s.Recorded == 0 {
		t.Errorf("%+v", s)
	}
	if got := r.pending.Load(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
}

// A call that is recorded is where the monotonic clock says, whatever the wall clock does.
func TestClockThatJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := faulty(t, nil)
		defer r.Close(context.Background())
		r.run = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano() // it was wrong, and is right now
		time.Sleep(90 * time.Minute)
		r.call(t, 1)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		in, err := Open(r.o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		for c, err := range in.Calls(Filter{}) {
			if want := time.Date(2001, 2, 3, 5, 35, 6, 0, time.UTC); err != nil || !c.At.Equal(want) {
				t.Errorf("%v, %v", c, err)
			}
		}
	})
}

// A folder that is removed while it is recorded, and a name that is taken, are troubles of a
// moment.
func TestFolderThatIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := faulty(t, nil)
		if err := os.WriteFile(filepath.Join(r.o.Dir, "calls-00000001.anrec"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.call(t, 1)
		time.Sleep(3 * time.Second) // failed: the file exists
		r.call(t, 1)
		time.Sleep(3 * time.Second)
		if err := os.RemoveAll(r.o.Dir); err != nil {
			t.Fatal(err)
		}
		r.call(t, 1) // into the file that is open and has no name
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := r.Stats(); s.Failed != 1 || s.Recorded != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// A call that is not chosen costs no allocation.
func TestChoiceAllocates(t *testing.T) {
	r, _ := faulty(t, nil)
	defer r.Close(context.Background())
	r.o.Share = 1e-9
	if n := testing.AllocsPerRun(1000, func() { r.choose("A.B") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChoose(b *testing.B) {
	r := &Recorder{o: Options{Share: DefaultShare, PerSecond: DefaultPerSecond}}
	b.ReportAllocs()
	for b.Loop() {
		r.choose("A.B")
	}
}
