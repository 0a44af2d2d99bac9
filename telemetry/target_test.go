package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// The passwords of targets are in nothing that a meter tells.
func TestTargetName(t *testing.T) {
	for target, want := range map[string]string{
		"127.0.0.1:80":                        "127.0.0.1:80",
		"tcp://a:1,b:2":                       "tcp://a:1,b:2",
		"redis://user:secret@127.0.0.1:1/x":   "redis://127.0.0.1:1/x",
		"redis://user:secret@a:1,b:2/x":       "redis://a:1,b:2/x",
		"http://user:secret@a:1,b:2":          "http://a:1,b:2",
		"redis://token@127.0.0.1:1/x":         "redis://127.0.0.1:1/x",
		"unix:///run/a@b":                     "unix:///run/a@b",
		"etcd://user:a%40b@127.0.0.1:1/arith": "etcd://127.0.0.1:1/arith",
	} {
		m := telemetry.New()
		m.Observer().CallEnded(context.Background(), &anser.CallInfo{Target: target, Method: "A.B", Err: errors.New("no")})
		failures, _ := m.Failures()
		if in, call := m.Snapshot().Methods[0].Target, failures[0].Target; in != want || call != want {
			t.Errorf("%s is %s and %s, want %s", target, in, call, want)
		}
	}
}
