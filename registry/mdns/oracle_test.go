package mdns_test

import (
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	stock "github.com/hashicorp/mdns"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/mdns"
)

// A program with hashicorp/mdns finds the instances that this package announces.
func TestSeenByOthers(t *testing.T) {
	kind := newKind()
	r := open(t, mdns.Type(kind))
	regtest.Register(t, r, registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"})
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(regtest.Patience)
	for { // each query waits for its timeout, and may miss the answer
		entries := make(chan *stock.ServiceEntry, 100)
		err := stock.Query(&stock.QueryParam{
			Service: kind, Domain: "local", Timeout: 500 * time.Millisecond, Interface: lo,
			Entries: entries, DisableIPv6: true, Logger: log.New(io.Discard, "", 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		close(entries)
		for e := range entries {
			text := strings.ReplaceAll(strings.Join(e.InfoFields, ""), `\`, "") // it escapes quotes
			if e.Port == 8972 && e.AddrV4.String() == "10.0.0.1" && strings.HasPrefix(e.Name, "arith-") && strings.Contains(text, `"zone":"north"`) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("hashicorp/mdns does not find the instance")
		}
	}
}
