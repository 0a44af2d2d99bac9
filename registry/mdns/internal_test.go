package mdns

import (
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/registry"
)

// Any message to the group is decoded or ignored, and whatever is decoded can be encoded again.
func FuzzUnderstand(f *testing.F) {
	r := &Registry{kind: "_anser._tcp.local.", ttl: 10 * time.Second}
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Tags: map[string]string{"k": "v"}}
	list, err := r.resources(&record{label: labelOf(in), in: in, owner: "me", at: 7})
	if err != nil {
		f.Fatal(err)
	}
	whole, err := response(list)
	if err != nil {
		f.Fatal(err)
	}
	if h := r.understand(whole); len(h.records) != 1 || !h.records[0].in.Equal(in) || h.records[0].at != 7 {
		f.Fatalf("%+v", h)
	}
	for n := 0; n <= len(whole); n += 7 {
		f.Add(whole[:n])
	}
	f.Add(whole)
	question, err := r.question()
	if err != nil {
		f.Fatal(err)
	}
	if h := r.understand(question); !h.asked {
		f.Fatal("a question is not understood")
	}
	f.Add(question)
	f.Fuzz(func(t *testing.T, data []byte) {
		h := r.understand(data)
		for i := range h.records {
			rec := &h.records[i]
			if err := rec.in.Validate(); err != nil {
				t.Error(err)
			}
			list, err := r.resources(rec)
			if err != nil {
				continue // an owner that is too long, for example
			}
			var m dnsmessage.Message
			if b, err := response(list); err == nil {
				if err := m.Unpack(b); err != nil {
					t.Error(err)
				}
				again := r.understand(b)
				if len(again.records) != 1 || !again.records[0].in.Equal(rec.in) || again.records[0].owner != rec.owner || again.records[0].at != rec.at {
					t.Errorf("%+v is understood as %+v when it is said again", rec, again.records)
				}
			}
		}
	})
}

func TestTheLaterOwnerHasTheKey(t *testing.T) {
	r := &Registry{owner: "b", own: map[string]*record{}, known: map[string]*record{}, changed: make(chan struct{})}
	mine := &record{label: "x", owner: "b", at: 10}
	r.own["x"], r.known["x"] = mine, mine
	if r.takeLocked(&record{label: "x", owner: "a", at: 9}) || r.own["x"] == nil || mine.again != 1 {
		t.Error("an older record is taken, or its owner is not told")
	}
	if r.takeLocked(&record{label: "x", owner: "a", at: 10}) || r.own["x"] == nil {
		t.Error("of two at the same time the first by name has the key: then neither gives way")
	}
	r.takeLocked(&record{label: "x", owner: "c", at: 10})
	if r.own["x"] != nil || r.known["x"].owner != "c" {
		t.Error("the later owner does not have the key")
	}
	for i := range MaxInstances + 10 {
		r.takeLocked(&record{label: string(rune(i + 0x10000)), owner: "a", at: 1})
	}
	if len(r.known) != MaxInstances || !r.overflow {
		t.Errorf("%d records are remembered, overflow %v", len(r.known), r.overflow)
	}
}
