package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

func TestCompare(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{`{"a":1,"b":[1,2]}`, ` {"b": [1, 2.0], "a": 1e0}`, ``},
		{`{"a":1}`, `{"a":2}`, `a a 1 2`},
		{`{"a":{"b":[{"c":"x"},{"c":"y"}]}}`, `{"a":{"b":[{"c":"x"},{"c":"z"}]}}`, `a.b[*].c a.b[1].c "y" "z"`},
		{`{"a":1,"gone":null}`, `{"a":1,"new":[]}`, `gone gone null |new new  []`},
		{`[1,2]`, `[1,2,3]`, `[*] [2]  3`},
		{`[1,2]`, `[1]`, `[*] [1] 2 `},
		{`"x"`, `{"a":1}`, `  "x" {"a":1}`},
		{`1`, `"1"`, `  1 "1"`},
		{`null`, `[]`, `  null []`},
		{`{"a.b":1,"":2}`, `{"a.b":2,"":3}`, `"" "" 2 3|"a.b" "a.b" 1 2`},
		{`9007199254740993`, `9007199254740992`, `  9007199254740993 9007199254740992`},
		{`1e999999999`, `1e999999998`, `  1e999999999 1e999999998`},
		{`1`, ``, `  1 `},
	} {
		var got []string
		for _, d := range compare([]byte(test.old), []byte(test.new)) {
			got = append(got, fmt.Sprintf("%s %s %s %s", d.path, d.exact, d.old, d.new))
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("%s and %s: %q, want %q", test.old, test.new, got, test.want)
		}
	}
	long, other := strings.Repeat("1,", 500), strings.Repeat("2,", 500)
	if n := len(compare([]byte("["+long+"1]"), []byte("["+other+"1]"))); n != maxDifferences {
		t.Errorf("%d differences", n)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":null}]}`), []byte(`{"a":[1,2.0,{"b":1}]}`))
	f.Add([]byte(`1e5`), []byte(`100000`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !json.Valid(a) || !json.Valid(b) {
			return
		}
		ab, ba := compare(a, b), compare(b, a)
		if (len(ab) == 0) != (len(ba) == 0) || len(compare(a, a)) != 0 {
			t.Fatalf("%q and %q: %v, %v", a, b, ab, ba)
		}
	})
}

func TestIgnored(t *testing.T) {
	ig, err := ParseIgnored([]string{"updated_at", "order.items[*].price", ".id", "A.B:token", "C.D:x.y"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"A.A updated_at": true, "A.A a.b[*].updated_at": true, "A.A updated_at.seconds": true, "A.A updated_at[*].s": true,
		"A.A not_updated_at": false, "A.A updated_at2": false,
		"A.A order.items[*].price": true, "A.A all[*].order.items[*].price.amount": true, "A.A items[*].price": false, "A.A border.items[*].price": false,
		"A.A id": true, "A.A id.x": true, "A.A a.id": false,
		"A.B token": true, "A.C token": false, "C.D x.y": true, "C.D x.z": false, "A.A ": false,
	} {
		method, path, _ := strings.Cut(path, " ")
		if ig.ignores(method, path) != want {
			t.Errorf("%s %s: want %v", method, path, want)
		}
	}
	for _, bad := range []string{"", ".", "a.", "a..b", ":x", "A.B:", "[*]"} {
		if _, err := ParseIgnored([]string{bad}); err == nil {
			t.Errorf("%q is a rule", bad)
		}
	}
}

func TestNoise(t *testing.T) {
	for _, test := range []struct {
		differs, noise int64
		want           bool
	}{{0, 0, false}, {1, 0, true}, {1000, 1000, false}, {990, 1010, false}, {400, 200, true}, {210, 200, false}, {3, 2, false}, {0, 5, false}} {
		p := pathTally{differs: test.differs, noise: test.noise}
		if p.real(10_000, 10_000) != test.want {
			t.Errorf("%+v", test)
		}
	}
	p := pathTally{differs: 10, noise: 3} // of a part of the calls that was asked twice
	if p.real(1000, 300) {
		t.Error("the shares are not compared")
	}
}

func TestIsHidden(t *testing.T) {
	hidden := []string{"request.a", "reply.b", "reply.list[*].c", "sent.d"}
	var got []string
	for _, path := range []string{"a", "b", "b.x", "bb", "list[*].c", "list[*].d", "list"} {
		if isHidden(hidden, path, false) {
			got = append(got, path)
		}
	}
	for _, path := range []string{"[*].d", "[*].d[*].x", "[*]", "[*].b"} {
		if isHidden(hidden, path, true) {
			got = append(got, path)
		}
	}
	if want := []string{"b", "b.x", "list[*].c", "[*].d", "[*].d[*].x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A gateway records methods with the service in front.
func TestMethodOfAGateway(t *testing.T) {
	get, other := &anser.MethodInfo{Name: "Orders.Get"}, &anser.MethodInfo{Name: "b/Orders.Get"}
	r := run{methods: [2]map[string]*anser.MethodInfo{{"Orders.Get": get, "b/Orders.Get": other}}}
	for name, want := range map[string]*anser.MethodInfo{"Orders.Get": get, "a/Orders.Get": get, "b/Orders.Get": other, "a/Orders.Add": nil, "Orders.Add": nil} {
		m, called := r.method(0, name)
		if m != want || m != nil && called != m.Name || m == nil && called != name {
			t.Errorf("%s: %v, %s", name, m, called)
		}
	}
}
