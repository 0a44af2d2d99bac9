package contacts_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/contacts"
	"github.com/anser-rpc/anser/codec/msgpack"
)

// plain is UserInfo without its generated code: the codec encodes it by reflection.
type plain contacts.UserInfo

// randomUser has integers of all sizes, and messages up to depth deep.
func randomUser(r *rand.Rand, depth int) contacts.UserInfo {
	text := func() string { return strings.Repeat("é", r.IntN(1<<r.IntN(9))) }
	number := func() uint64 { return r.Uint64() >> r.IntN(64) }
	u := contacts.UserInfo{
		UserName: text(), Age: int32(number()) * int32(1-2*r.IntN(2)), Weight: r.NormFloat64(), Grade: byte(number()), Id: number(),
	}
	if r.IntN(2) == 0 {
		u.AddressList = make([]string, r.IntN(20))
		for i := range u.AddressList {
			u.AddressList[i] = text()
		}
	}
	if r.IntN(2) == 0 {
		u.Picture = make([]byte, r.IntN(1<<r.IntN(10)))
	}
	if depth > 0 {
		parent := randomUser(r, depth-1)
		u.Parent = &parent
		for range r.IntN(3) {
			u.Friends = append(u.Friends, randomUser(r, depth-1))
		}
	}
	return u
}

// Generated code writes the bytes that reflection writes, and reads them.
func TestMsgpackSameBytes(t *testing.T) {
	c := msgpack.New()
	r := rand.New(rand.NewPCG(1, 2))
	users := []contacts.UserInfo{{}, {Age: math.MinInt32, Id: math.MaxUint64, Weight: math.Inf(1)}, {
		Picture: make([]byte, 1<<16), AddressList: make([]string, 1<<16), UserName: strings.Repeat("x", 1<<16),
	}}
	for range 300 {
		users = append(users, randomUser(r, r.IntN(4)))
	}
	for _, u := range users {
		ours, err := c.Append(nil, &u)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := c.Append(nil, (*plain)(&u))
		if err != nil || !bytes.Equal(ours, theirs) {
			t.Fatalf("%+v is encoded as\n%x, by reflection as\n%x, %v", u, ours, theirs, err)
		}
		var back contacts.UserInfo
		var byReflection plain
		if err := c.Unmarshal(ours, &back); err != nil {
			t.Fatal(err)
		}
		if err := c.Unmarshal(ours, &byReflection); err != nil || !reflect.DeepEqual(back, contacts.UserInfo(byReflection)) {
			t.Fatalf("%x is\n%+v, by reflection\n%+v, %v", ours, back, byReflection, err)
		}
	}
}

// A message that contains itself is refused.
func TestMsgpackOfACycle(t *testing.T) {
	u := new(contacts.UserInfo)
	u.Parent = u
	if _, err := msgpack.New().Append(nil, u); err == nil || !strings.Contains(err.Error(), "levels") {
		t.Error(err)
	}
}

// Arrays that declare elements, inside each other, allocate nothing for missing ones.
func TestMsgpackAllocatesWhatIsThere(t *testing.T) {
	c := msgpack.New()
	var data []byte
	for range 30 {
		data = append(data, "\x81\xa7friends\xdd\x00\x0f\xff\x00"...)
	}
	data = append(data, make([]byte, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if c.Unmarshal(data, new(contacts.UserInfo)) == nil {
		t.Error("a number was taken for a message")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestMsgpackAllocations(t *testing.T) {
	c := msgpack.New()
	u := contacts.UserInfo{UserName: "ann", AddressList: []string{"a", "b"}, Parent: &contacts.UserInfo{}}
	data, err := c.Append(nil, &u)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { c.Append(buf, &u) }); n != 0 {
		t.Errorf("encoding takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { c.Unmarshal(data, new(contacts.UserInfo)) }); n > 7 {
		t.Errorf("decoding takes %v allocations", n)
	}
}

// FuzzMsgpack checks that generated code takes what reflection takes, and makes the same of it.
func FuzzMsgpack(f *testing.F) {
	c := msgpack.New()
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		u := randomUser(r, r.IntN(2))
		data, err := c.Append(nil, &u)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 300 {
			f.Add(data)
		}
	}
	f.Add([]byte("\x82\xa3age\xc0\xa6weight\x01"))              // what only reflection takes
	f.Add([]byte("\x82\xa6parent\x81\xa2id\x01\xa6parent\x80")) // a field that occurs twice
	f.Add([]byte("\x81\xa4none\x92\x81\x01\xc4\x01x\xca\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours contacts.UserInfo
		var theirs plain
		err, bad := c.Unmarshal(data, &ours), c.Unmarshal(data, &theirs)
		if (err == nil) != (bad == nil) {
			t.Fatalf("%x: our error is %v, that of reflection %v", data, err, bad)
		}
		if err != nil {
			return
		}
		a, errA := c.Append(nil, &ours)
		b, errB := c.Append(nil, (*plain)(&theirs))
		if (errA == nil) != (errB == nil) || !bytes.Equal(a, b) {
			t.Fatalf("%x is\n%+v, by reflection\n%+v", data, ours, theirs)
		}
	})
}

func BenchmarkMsgpack(b *testing.B) {
	c := msgpack.New()
	u := contacts.UserInfo{
		UserName: "ann", Age: 30, Weight: 60.5, AddressList: []string{"12 Long Street", "Amsterdam"},
		Friends: []contacts.UserInfo{{UserName: "bob"}, {UserName: "eve"}}, Parent: &contacts.UserInfo{UserName: "joe"}, Id: 1 << 40,
	}
	data, err := c.Append(nil, &u)
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	for _, run := range []struct {
		name string
		f    func() error
	}{
		{"append/generated", func() error { _, err := c.Append(buf, &u); return err }},
		{"append/reflection", func() error { _, err := c.Append(buf, (*plain)(&u)); return err }},
		{"decode/generated", func() error { return c.Unmarshal(data, new(contacts.UserInfo)) }},
		{"decode/reflection", func() error { return c.Unmarshal(data, new(plain)) }},
	} {
		b.Run(run.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := run.f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
