package generated_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/codectest/generated/kitextest"
	"github.com/anser-rpc/anser/codec/thrift"
)

func kitexPerson() *kitextest.Person {
	return &kitextest.Person{
		Name: "Ann", Age: new(int32(-7)), Photo: []byte("photo"), Names: []string{"A", "变"},
		Scores: map[string]int64{"x": 1 << 40}, Lucky: []int32{3, 1 << 30}, Home: &kitextest.Address{Street: "Main", Number: new(int16(5))},
		Friends: []*kitextest.Person{{
			Name: "Bob", Photo: []byte{}, Names: []string{}, Scores: map[string]int64{}, Lucky: []int32{},
			Friends: []*kitextest.Person{}, Flags: []bool{}, Lists: map[string][]int32{},
		}},
		Happy: true, Small: -3, Height: 1.75, Color: kitextest.Color_BLUE, Flags: []bool{true, false},
		Lists: map[string][]int32{"a": {1, 2}},
	}
}

func kitexHostile() []codectest.Input {
	kitex := func(name, data string) codectest.Input { return input(name, data, new(kitextest.Person)) }
	return []codectest.Input{
		kitex("45 raw bytes to a struct", "some text"),
		kitex("46 nothing", ""),
		kitex("50 string of 2 GiB", "\x0b\x00\x01\x7f\xff\xff\xffx"),
		kitex("50 string of a negative length", "\x0b\x00\x01\xff\xff\xff\xff\x00"),
		kitex("59 list of 2^31 - 1", "\x0f\x00\x04\x0b\x7f\xff\xff\xff"),
		kitex("59 list of -1", "\x0f\x00\x04\x0b\xff\xff\xff\xff\x00"),
		kitex("59 list of 2^31 - 1 structs", "\x0f\x00\x08\x0c\x7f\xff\xff\xff\x00"),
		kitex("59 map of 2^31 - 1", "\x0d\x00\x05\x0b\x0a\x7f\xff\xff\xff"),
		kitex("59 set of 2^31 - 1", "\x0e\x00\x06\x08\x7f\xff\xff\xff"),
		kitex("60 structs 1,000 deep", strings.Repeat("\x0c\x00\x0f", 1000)+strings.Repeat("\x00", 1001)),
		kitex("60 structs 100,000 deep", strings.Repeat("\x0c\x00\x0f", 100000)),
		kitex("60 unknown structs 1,000 deep", strings.Repeat("\x0c\x00\x63", 1000)+strings.Repeat("\x00", 1001)),
		kitex("61 a required field that is not there", "\x0c\x00\x07\x00\x00"),
		kitex("trailing garbage", "\x00\x00"),
	}
}

func TestKitex(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   thrift.Binary(),
		Values:  []any{kitexPerson(), &kitextest.Address{Street: "Main"}},
		Misfits: []any{new(int), kitextest.Address{}},
		Hostile: kitexHostile(),
	})
	p := kitexPerson()
	p.Spouse = p
	if _, err := thrift.Binary().Append(nil, p); err == nil {
		t.Error("a value that contains itself was written")
	}
}

// Kitex's structs are read from the bytes of the Thrift compiler's, with the fields in another
// order, and have no compact protocol.
func TestKitexAndThrift(t *testing.T) {
	c := thrift.Binary()
	got, err := c.Append([]byte("before"), &kitextest.Address{Street: "Main", Number: new(int16(5))})
	if want := []byte("before\x06\x00\x02\x00\x05\x0b\x00\x01\x00\x00\x00\x04Main\x00"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	a := new(kitextest.Address)
	if err := c.Unmarshal([]byte("\x0b\x00\x01\x00\x00\x00\x04Main\x06\x00\x02\x00\x05\x00"), a); err != nil || a.Street != "Main" || a.GetNumber() != 5 {
		t.Errorf("%v, %v", a, err)
	}
	compact := thrift.Compact()
	if compact.Fits(new(kitextest.Address)) || !c.Fits(new(kitextest.Address)) {
		t.Error("Fits says otherwise")
	}
	if _, err := compact.Append(nil, new(kitextest.Address)); err == nil || !strings.Contains(err.Error(), "thrift.Binary") {
		t.Errorf("the compact protocol: %v", err)
	}
}

func FuzzKitex(f *testing.F) {
	for _, in := range kitexHostile() {
		if len(in.Data) < 100 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, thrift.Binary(), kitexPerson(), &kitextest.Address{Street: "Main"})
}
