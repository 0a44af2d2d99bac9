package anser_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/anser-rpc/anser"
)

func TestAddresses(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo}, anser.AllowFrom(netip.MustParsePrefix("10.0.0.0/8")))
	c := dial(t, l.Addr().String(), anser.Conns(1))
	_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast))
	if e := fault(t, err); e.Outcome != anser.NotSent {
		t.Error(err)
	}
	if st := s.Stats(); st.WrongAddress == 0 || st.Accepted != 0 {
		t.Errorf("%d kept out, %d accepted", st.WrongAddress, st.Accepted)
	}
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s.SetAddresses(here, nil)
	if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
		t.Error(err)
	}
	s.SetAddresses(here, here) // existing connections are not affected
	if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
		t.Error(err)
	}
	other := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(1<<20))
	if _, err = call(context.Background(), other, "Echo.Say", "", anser.WithFailMode(anser.Failfast)); err == nil {
		t.Error("a denied address is let in")
	}
}
