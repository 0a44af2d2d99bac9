package telemetry_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/telemetry"
)

// The record of a call says why it went to its instance, and survives JSON.
func TestPickOfRecord(t *testing.T) {
	m := telemetry.New()
	tap, err := m.Tap(telemetry.Filter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	ended := m.Observer().CallEnded
	ended(context.Background(), &anser.CallInfo{
		Method: "Shop.Buy", Address: "a:1", Attempt: 1, Pick: anser.Pick{Reason: balance.PickedInstead, Balancer: "sticky", Route: "canary"},
		Attempts: []anser.AttemptInfo{{Address: "b:1", Code: anser.Unavailable, Outcome: anser.Refused, Reason: balance.PickedKept, Message: "secret"}},
	})
	ended(context.Background(), &anser.CallInfo{Method: "Shop.Buy", Pick: anser.Pick{Balancer: "sticky"}, Err: anser.Errorf(anser.Unavailable, "no instance")})
	ended(context.Background(), &anser.CallInfo{Method: "Shop.Buy", Server: true})
	for i, want := range []string{"instead (sticky) of canary", "", ""} {
		c := <-tap.Calls
		if got := c.Pick.String(); got != want {
			t.Errorf("call %d was picked as %q, want %q", i, got, want)
		}
		if i == 0 && (len(c.Attempts) != 1 || c.Attempts[0].Reason != balance.PickedKept || c.Attempts[0].Message != "") {
			t.Errorf("attempts %+v", c.Attempts)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		back := new(telemetry.Call)
		if err := json.Unmarshal(text, back); err != nil || !reflect.DeepEqual(back.Pick, c.Pick) || !reflect.DeepEqual(back.Attempts, c.Attempts) {
			t.Errorf("%s is %+v, %v", text, back, err)
		}
	}
}
