package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

func TestInstanceDefaults(t *testing.T) {
	in := registry.Instance{Service: "arith", Address: "h:1"}
	if err := in.Validate(); err != nil {
		t.Fatal(err)
	}
	if in.Key() != "h:1" || in.EffectiveWeight() != registry.DefaultWeight || in.State != registry.Up {
		t.Errorf("key %q, weight %d, state %v", in.Key(), in.EffectiveWeight(), in.State)
	}
	spelled := in
	spelled.ID, spelled.Weight, spelled.Tags = "h:1", registry.DefaultWeight, map[string]string{}
	if !in.Equal(spelled) {
		t.Error("an instance differs from itself with its defaults spelled out")
	}
}

func TestInstanceEqualSeesEveryField(t *testing.T) {
	base := registry.Instance{Service: "arith", Address: "h:1"}
	for name, change := range map[string]func(*registry.Instance){
		"ID":        func(in *registry.Instance) { in.ID = "x" },
		"Service":   func(in *registry.Instance) { in.Service = "x" },
		"Address":   func(in *registry.Instance) { in.Address = "x:1" },
		"Group":     func(in *registry.Instance) { in.Group = "x" },
		"Version":   func(in *registry.Instance) { in.Version = "x" },
		"Zone":      func(in *registry.Instance) { in.Zone = "x" },
		"Weight":    func(in *registry.Instance) { in.Weight = 1 },
		"State":     func(in *registry.Instance) { in.State = registry.Draining },
		"Latitude":  func(in *registry.Instance) { in.Latitude = 1 },
		"Longitude": func(in *registry.Instance) { in.Longitude = 1 },
		"Tags":      func(in *registry.Instance) { in.Tags = map[string]string{"x": "y"} },
	} {
		other := base
		change(&other)
		if base.Equal(other) || other.Equal(base) {
			t.Errorf("Equal does not see %s", name)
		}
	}
}

func TestStateText(t *testing.T) {
	for state, text := range map[registry.State]string{
		registry.Up: `"up"`, registry.Draining: `"draining"`, registry.Disabled: `"disabled"`,
	} {
		got, err := json.Marshal(state)
		if err != nil || string(got) != text {
			t.Errorf("Marshal(%v) = %s, %v", state, got, err)
		}
		var back registry.State
		if err := json.Unmarshal(got, &back); err != nil || back != state {
			t.Errorf("Unmarshal(%s) = %v, %v", got, back, err)
		}
	}
	if text, err := json.Marshal(registry.State(7)); err == nil {
		t.Errorf("Marshal(State(7)) = %s: nobody could read that", text)
	}
	var s registry.State
	if err := json.Unmarshal([]byte(`"down"`), &s); err == nil {
		t.Errorf("Unmarshal(down) = %v", s)
	}
}
