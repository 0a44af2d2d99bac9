package telemetry_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// A meter that was not made has measured nothing, and its option is a mistake of the server or
// client.
func TestMeterNotMade(t *testing.T) {
	for name, m := range map[string]*telemetry.Meter{"nil": nil, "zero": new(telemetry.Meter)} {
		t.Run(name, func(t *testing.T) {
			if err := anser.NewServer(m.Option(), anser.NoSignals()).ListenAndServe("127.0.0.1:0"); err == nil {
				t.Error("a server accepts its option")
			}
			if c, err := anser.Dial("127.0.0.1:1", m.Option()); err == nil {
				c.Close()
				t.Error("a client accepts its option")
			}
			failures, _ := m.Failures()
			slow, _ := m.SlowCalls()
			if len(m.Servers())+len(m.Clients())+len(m.Snapshot().Methods)+len(m.Trace(""))+len(failures)+len(slow) != 0 {
				t.Error("it has measured something")
			}
			if _, err := m.Tap(telemetry.Filter{}, 1); err == nil {
				t.Error("it has a tap")
			}
			m.Untap(nil)
		})
	}
}
