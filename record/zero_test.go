package record_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/record"
)

// Misuse of a recorder is an error and never a panic.
func TestRecorderNotMade(t *testing.T) {
	for name, r := range map[string]*record.Recorder{"nil": nil, "zero": new(record.Recorder)} {
		t.Run(name, func(t *testing.T) {
			if err := anser.NewServer(r.Option(), anser.NoSignals()).ListenAndServe("127.0.0.1:0"); err == nil {
				t.Error("a server accepts its option")
			}
			if err := r.Close(context.Background()); err == nil || r.Stats() != (record.Stats{}) {
				t.Error(err, r.Stats())
			}
		})
	}
	r, err := record.New(record.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var none context.Context // nil
	if err := r.Close(none); err == nil {
		t.Error("a nil context is accepted")
	}
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
