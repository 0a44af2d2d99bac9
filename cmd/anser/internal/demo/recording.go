package demo

import (
	"context"
	"log/slog"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/record"
)

// The bounds of what an instance of the demo records.
const (
	recordedShare     = 0.2
	recordedPerSecond = 50
	recordedBytes     = 4 << 20
)

// recording is the recording of an instance.
type recording struct{ *record.Recorder }

// recordCalls records the calls of an instance in a folder of its own.
func recordCalls(dir string, log *slog.Logger) (recording, error) {
	r, err := record.New(record.Options{
		Dir: dir, Share: recordedShare, PerSecond: recordedPerSecond, MaxBytes: recordedBytes, Logger: log,
		Methods: func(name string) bool { return name != string(Slow) },
	})
	return recording{r}, err
}

func (r recording) option() anser.ServerOption { return r.Option() }

// recordBound is how long a process waits at its end for the disk.
const recordBound = 2 * time.Second

// end writes what waits. A disk that does not answer does not hold up the end of the process.
func (r recording) end() {
	ctx, cancel := context.WithTimeout(context.Background(), recordBound)
	defer cancel()
	r.Close(ctx)
}
