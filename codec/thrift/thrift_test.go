package thrift_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/thrift"
	"github.com/anser-rpc/anser/codec/thrift/internal/testthrift"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func person() *testthrift.Person {
	return &testthrift.Person{
		Name: "变", Age: new(int32(-7)), Photo: []byte("photo\xff"), Names: []string{"a", "b"},
		Scores: map[string]int64{"x": 1 << 40}, Lucky: []int32{3, 1 << 30}, Home: &testthrift.Address{Street: "Main", Number: new(int16(5))},
		Friends: []*testthrift.Person{{Name: "Bob", Photo: []byte{}, Names: []string{}, Scores: map[string]int64{}, Lucky: []int32{}, Friends: []*testthrift.Person{}, Flags: []bool{}, Lists: map[string][]int32{}}},
		Happy:   true, Small: -1, Height: 1.75, Color: testthrift.Color_BLUE, Flags: []bool{true, false}, Lists: map[string][]int32{"l": {1, 2}},
	}
}

// chain returns a person with a chain of n spouses.
func chain(n int) *testthrift.Person {
	p := person()
	for range n {
		p = &testthrift.Person{Spouse: p}
	}
	return p
}

func input(name, data string) codectest.Input {
	return codectest.Input{Name: name, Data: []byte(data), Into: &testthrift.Person{}}
}

func binaryHostile() []codectest.Input {
	return []codectest.Input{
		input("45 raw bytes to a struct", "some text"),
		input("46 nothing", ""),
		input("50 string of 2 GiB", "\x0b\x00\x01\x7f\xff\xff\xffx"),
		input("50 string of a negative length", "\x0b\x00\x01\xff\xff\xff\xff\x00"),
		input("59 list of 2^31 - 1", "\x0f\x00\x04\x0b\x7f\xff\xff\xff"),
		input("59 list of -1", "\x0f\x00\x04\x0b\xff\xff\xff\xff\x00"),
		input("59 list of 2^31 - 1 structs", "\x0f\x00\x08\x0c\x7f\xff\xff\xff\x00"),
		input("59 list of 2^27 of nothing", "\x0f\x00\x08\x00\x08\x00\x00\x00\x00"),
		input("59 list of 2^27 of a type that is not there", "\x0f\x00\x08\x01\x08\x00\x00\x00\x00"),
		input("59 map of 2^31 - 1", "\x0d\x00\x05\x0b\x0a\x7f\xff\xff\xff"),
		input("59 set of 2^31 - 1", "\x0e\x00\x06\x08\x7f\xff\xff\xff"),
		input("59 unknown list of 2^31 - 1", "\x0f\x00\x63\x0b\x7f\xff\xff\xff"),
		input("60 structs 1,000 deep", strings.Repeat("\x0c\x00\x0f", 1000)+strings.Repeat("\x00", 1001)),
		input("60 structs 100,000 deep", strings.Repeat("\x0c\x00\x0f", 100000)),
		input("60 unknown structs 1,000 deep", strings.Repeat("\x0c\x00\x63", 1000)+strings.Repeat("\x00", 1001)),
		input("60 unknown lists 1,000 deep", "\x0f\x00\x63"+strings.Repeat("\x0f\x00\x00\x00\x01", 1000)+"\x03\x00\x00\x00\x00\x00"),
		input("61 an unknown type", "\x11\x00\x01\x00"),
		input("61 a required field that is not there", "\x0c\x00\x07\x00\x00"),
		input("trailing garbage", "\x00\x00"),
	}
}

func compactHostile() []codectest.Input {
	return []codectest.Input{
		input("45 raw bytes to a struct", "some text"),
		input("46 nothing", ""),
		input("50 string of 2 GiB", "\x18\xff\xff\xff\xff\x07x"),
		input("50 string of a negative length", "\x18\xff\xff\xff\xff\x0fx\x00"),
		input("55 a varint of 11 bytes", "\x15\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00"),
		input("59 list of 2^31 - 1", "\x49\xf8\xff\xff\xff\xff\x07"),
		input("59 list of -1", "\x49\xf8\xff\xff\xff\xff\x0f\x00"),
		input("59 list of 2^31 - 1 structs", "\x89\xfc\xff\xff\xff\xff\x07\x00"),
		input("59 list of 2^27 of nothing", "\x89\xf0\x80\x80\x80\x40\x00"),
		input("59 map of 2^31 - 1", "\x5b\xff\xff\xff\xff\x07\x86"),
		input("59 set of 2^31 - 1", "\x6a\xf5\xff\xff\xff\xff\x07"),
		input("60 structs 1,000 deep", strings.Repeat("\xfc", 1000)+strings.Repeat("\x00", 1001)),
		input("60 structs 100,000 deep", strings.Repeat("\xfc", 100000)),
		input("60 unknown lists 1,000 deep", "\x09\x63"+strings.Repeat("\x19", 1000)+"\x13\x00\x00"),
		input("61 an unknown type", "\x1e\x00"),
		input("61 a required field that is not there", "\x7c\x00\x00"),
		input("trailing garbage", "\x00\x00"),
	}
}

func TestConformance(t *testing.T) {
	for _, test := range []struct {
		codec   *thrift.Codec
		id      uint8
		hostile []codectest.Input
	}{
		{thrift.Binary(), codec.ThriftBinaryID, binaryHostile()},
		{thrift.Compact(), codec.ThriftCompactID, compactHostile()},
	} {
		t.Run(test.codec.Name(), func(t *testing.T) {
			if test.codec.ID() != test.id {
				t.Error(test.codec.ID())
			}
			codectest.Run(t, codectest.Suite{
				Codec:   test.codec,
				Values:  []any{person(), &testthrift.Address{Street: "Main"}},
				Misfits: []any{new(int), &struct{ A int }{1}, new([]byte), "text"},
				Hostile: test.hostile,
			})
		})
	}
}

func TestGolden(t *testing.T) {
	v := &testthrift.Address{Street: "Main", Number: new(int16(5))}
	for want, c := range map[string]*thrift.Codec{
		"0b0001000000044d61696e06000200050" + "0": thrift.Binary(),
		"18044d61696e140a00":                      thrift.Compact(),
	} {
		if got, err := c.Append(nil, v); err != nil || fmt.Sprintf("%x", got) != want {
			t.Errorf("%s: %x, %v, want %s", c.Name(), got, err, want)
		}
	}
}

// Kitex writes the fields in another order.
func TestBytesOfKitex(t *testing.T) {
	got := new(testthrift.Address)
	err := thrift.Binary().Unmarshal([]byte("\x06\x00\x02\x00\x05\x0b\x00\x01\x00\x00\x00\x04Main\x00"), got)
	if err != nil || got.Street != "Main" || got.GetNumber() != 5 {
		t.Errorf("%v, %v", got, err)
	}
}

// outdated is a struct as Kitex generates it, with mistakes.
type outdated struct{ length, written, read int }

func (o *outdated) BLength() int { return o.length }

func (o *outdated) FastWrite(buf []byte) int {
	clear(buf)
	return o.written
}

func (o *outdated) FastRead([]byte) (int, error) { return o.read, nil }

// Code of Kitex that does not fit its own struct is an error.
func TestCodeOfKitexThatIsWrong(t *testing.T) {
	c := thrift.Binary()
	for _, v := range []*outdated{{length: 1, written: 0}, {length: 1, written: 2}, {length: -1, written: -1}, {length: 2, written: 2}} {
		if out, err := c.Append([]byte("x"), v); err == nil || string(out) != "x" {
			t.Errorf("%+v is written as %q", *v, out)
		}
	}
	if out, err := c.Append(nil, &outdated{length: 1, written: 1}); err != nil || string(out) != "\x00" {
		t.Errorf("%q, %v", out, err)
	}
	if err := c.Unmarshal([]byte{0}, &outdated{read: 0}); err == nil {
		t.Error("bytes that were not read are ignored")
	}
	if err := c.Unmarshal([]byte{0}, &outdated{read: 1}); err != nil {
		t.Error(err)
	}
}

func TestBothSidesTakeTheSameDepth(t *testing.T) {
	for _, c := range []*thrift.Codec{thrift.Binary(), thrift.Compact()} {
		for n := range 70 {
			data, err := c.Append(nil, chain(n))
			if deep := n+4 > thrift.MaxDepth; (err != nil) != deep { // the innermost has friends with lists
				t.Errorf("%s, %d spouses: %v", c.Name(), n, err)
			}
			if err == nil && c.Unmarshal(data, new(testthrift.Person)) != nil {
				t.Errorf("%s: %d spouses were written and cannot be read", c.Name(), n)
			}
		}
		p := person()
		p.Spouse = p
		if _, err := c.Append(nil, p); err == nil {
			t.Error("a value that contains itself was written")
		}
		// A failure leaves no state behind.
		if err := c.Unmarshal([]byte("nonsense"), p); err == nil {
			t.Error("nonsense was read")
		}
		if data, err := c.Append(nil, person()); err != nil || c.Unmarshal(data, new(testthrift.Person)) != nil {
			t.Error("a good message after bad ones:", err)
		}
	}
}

func FuzzBinary(f *testing.F)  { fuzz(f, thrift.Binary(), binaryHostile()) }
func FuzzCompact(f *testing.F) { fuzz(f, thrift.Compact(), compactHostile()) }

func fuzz(f *testing.F, c *thrift.Codec, hostile []codectest.Input) {
	data, err := c.Append(nil, person())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, in := range hostile {
		if len(in.Data) < 100 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, c, &testthrift.Person{}, &testthrift.Address{})
}

func BenchmarkBinary(b *testing.B)  { codectest.Bench(b, thrift.Binary(), person()) }
func BenchmarkCompact(b *testing.B) { codectest.Bench(b, thrift.Compact(), person()) }
