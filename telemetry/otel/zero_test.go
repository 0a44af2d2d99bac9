package otel_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/otel"
)

func TestMeterNotMade(t *testing.T) {
	for name, m := range map[string]*telemetry.Meter{"nil": nil, "zero": new(telemetry.Meter)} {
		if _, err := otel.New(otel.Meter(m)); err == nil {
			t.Errorf("a meter that is %s is accepted", name)
		}
	}
}

// Misuse of an exporter is an error and never a panic.
func TestExporterNotMade(t *testing.T) {
	for name, o := range map[string]*otel.Exporter{"nil": nil, "zero": new(otel.Exporter)} {
		t.Run(name, func(t *testing.T) {
			if err := anser.NewServer(o.Option(), anser.NoSignals()).ListenAndServe("127.0.0.1:0"); err == nil {
				t.Error("a server accepts its option")
			}
			if _, err := o.Producer().Produce(context.Background()); err == nil || o.Meter() != nil || o.TailDropped() != 0 {
				t.Error("it has measured something")
			}
		})
	}
}
