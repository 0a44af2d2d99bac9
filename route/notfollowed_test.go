package route_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// A client without the option ignores the rules: its status and its log report that.
func TestClientSaysThatItDoesNotFollowRules(t *testing.T) {
	m := registry.NewMemory()
	start(t, m, registry.Instance{ID: "a"})
	set(t, m, `{"mocks":[{"reply":{"Name":"mock"}}]}`)
	log := new(testlog.Buffer)
	c := dial(t, m, anser.Logger(log.Logger()))
	if st := c.Status().Rules; st == nil || !st.NotFollowed || st.Version != 0 {
		t.Errorf("the status of the rules is %+v, want that they are not followed", st)
	}
	only(t, count(t, c, 3, nil), "a")
	eventually(t, "a warning", func() bool {
		return strings.Contains(log.String(), "add the option route.Rules() to Dial") && strings.Contains(log.String(), "service=test")
	})
	x, err := c.Explain(t.Context(), "Test.Who")
	if err != nil || !x.RulesNotFollowed {
		t.Errorf("explained as %+v, %v: want that rules are not followed", x, err)
	}

	follows := dial(t, m, route.Rules())
	await(t, follows, 1, 1)
	if st := follows.Status().Rules; st.NotFollowed {
		t.Errorf("the status of the rules is %+v with route.Rules", st)
	}
	addresses, err := anser.Dial("127.0.0.1:1", silent)
	must(t, err)
	defer addresses.Close()
	if st := addresses.Status().Rules; st != nil {
		t.Errorf("the status of the rules is %+v for a client without a registry", st)
	}
}

// A service without rules is no reason for a warning.
func TestNoWarningWithoutRules(t *testing.T) {
	m := registry.NewMemory()
	start(t, m, registry.Instance{ID: "a"})
	log := new(testlog.Buffer)
	c := dial(t, m, anser.Logger(log.Logger()))
	only(t, count(t, c, 3, nil), "a")
	must(t, c.Close()) // waits for the check of the rules
	if strings.Contains(log.String(), "route.Rules") {
		t.Errorf("logged %s", log)
	}
}
