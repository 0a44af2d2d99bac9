package generated_test

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/codectest/generated/colfertest"
	"github.com/anser-rpc/anser/codec/codectest/generated/gencodetest"
	"github.com/anser-rpc/anser/codec/codectest/generated/msgptest"
	"github.com/anser-rpc/anser/codec/msgpack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func gencodePerson() *gencodetest.Person {
	return &gencodetest.Person{Name: "Ann", Age: -7, Height: 1.75, Home: gencodetest.Address{Street: "Main", Number: 5}, Work: &gencodetest.Address{Street: "变"}}
}

func gencodeMessage() *gencodetest.Message {
	return &gencodetest.Message{Field1: "text", Field2: math.MaxInt32, Field22: math.MinInt64, Field80: true, Field5: []uint64{1, math.MaxUint64}}
}

func colferPerson() *colfertest.Person {
	return &colfertest.Person{
		Name: "Ann", Age: -7, Photo: []byte("photo"), Born: time.Unix(1, 2).UTC(), Nicknames: []string{"A", "变"},
		Friends: []*colfertest.Person{{Name: "Bob"}, {Name: "Cem", Photo: []byte{1}}},
	}
}

func msgpPerson() *msgptest.Person {
	return &msgptest.Person{
		Name: "Ann", Photo: []byte("photo"), Tags: map[string]string{"k": "v"},
		Friends: []msgptest.Person{{Name: "Bob", Photo: []byte{1}, Tags: map[string]string{"a": "b"}}}, Work: &msgptest.Address{Street: "Main", Number: 5},
	}
}

func input(name, data string, into any) codectest.Input {
	return codectest.Input{Name: name, Data: []byte(data), Into: into}
}

func TestGencode(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   codec.Binary{},
		Values:  []any{gencodePerson(), &gencodetest.Address{Street: "Main", Number: 5}},
		Misfits: []any{gencodeMessage()},
		Hostile: []codectest.Input{
			input("46 nothing", "", &gencodetest.Person{}),
			input("50 a string of 2^62", "\xff\xff\xff\xff\xff\xff\xff\xff\x3fx", &gencodetest.Person{}),
			input("55 a varint of 11 bytes", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", &gencodetest.Person{}),
			input("trailing garbage", "\x00\x00\x00!", &gencodetest.Address{}),
		},
	})
}

// Generated code allocates a slice of the declared length, so it is decoded only with TrustPeers.
func TestGencodeWithSlices(t *testing.T) {
	err := codec.Binary{}.Unmarshal(nil, new(gencodetest.Message))
	if err == nil || !strings.Contains(err.Error(), "TrustPeers") {
		t.Error(err)
	}
	c, got := codec.Binary{TrustPeers: true}, new(gencodetest.Message)
	data, err := c.Append(nil, gencodeMessage())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Unmarshal(data, got); err != nil || got.Field1 != "text" || len(got.Field5) != 2 || got.Field22 != math.MinInt64 {
		t.Errorf("%+v, %v", got, err)
	}
	if !c.Fits(got) || (codec.Binary{}).Fits(got) {
		t.Error("Fits says otherwise")
	}
}

func TestColfer(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:  codec.Binary{},
		Values: []any{colferPerson(), &colfertest.Person{}, &colfertest.Message{Field1: "text", Field22: -5, Field80: true}},
		Hostile: []codectest.Input{
			input("46 nothing", "", &colfertest.Person{}),
			input("50 a text of 2^31", "\x00\xff\xff\xff\xff\x0fx\x7f", &colfertest.Person{}),
			input("47 2^31 texts", "\x04\xff\xff\xff\xff\x0f\x7f", &colfertest.Person{}),
			input("47 2^31 structs", "\x05\xff\xff\xff\xff\x0f\x7f", &colfertest.Person{}),
			input("trailing garbage", "\x7f!", &colfertest.Person{}),
			input("61 a field that is not there", "\x70\x01\x7f", &colfertest.Person{}),
		},
	})
}

// TestColferLists shows the limit in Colfer's own code: missing elements are allocated, up to
// ColferListMax.
func TestColferLists(t *testing.T) {
	data := []byte("\x05\x80\x80\x04") // 65,536 structs
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := codec.Binary{}.Unmarshal(data, new(colfertest.Person))
	runtime.ReadMemStats(&after)
	used := after.TotalAlloc - before.TotalAlloc
	if err == nil || used > 16<<20 {
		t.Errorf("%v, and %d bytes were allocated for %d", err, used, len(data))
	}
	t.Logf("%d bytes for %d", used, len(data))
}

func TestMsgp(t *testing.T) {
	c := codec.Binary{}
	v := msgpPerson()
	if c.Fits(v) {
		t.Error("msgp's types are claimed, although MessagePack is there for them")
	}
	data, err := c.Append([]byte("before"), v)
	if err != nil {
		t.Fatal(err)
	}
	got := new(msgptest.Person)
	if err := msgpack.New().Unmarshal(data[len("before"):], got); err != nil || got.Friends[0].Name != "Bob" {
		t.Errorf("the codec msgpack cannot read it: %+v, %v", got, err)
	}
	// msgp makes strings of keys in bin.
	for _, c := range []codec.Codec{c, msgpack.New()} {
		for key, want := range map[string]string{"\xff": "not UTF-8", "a": ""} {
			err := c.Unmarshal([]byte("\x81\xa4more\x91\x81\xc4\x01"+key+"\x01"), new(msgptest.Person))
			if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %q: %v", c.Name(), key, err)
			}
		}
	}
	codectest.Run(t, codectest.Suite{
		Codec:  named{c},
		Values: []any{v, &msgptest.Address{Street: "变", Number: 5}},
		Hostile: []codectest.Input{
			input("47 array32 of 2^31", "\x81\xa7friends\xdd\x80\x00\x00\x00", &msgptest.Person{}),
			input("48 map32 of 2^31", "\x81\xa4tags\xdf\x80\x00\x00\x00", &msgptest.Person{}),
			input("49 recursive type", strings.Repeat("\x81\xa7friends\x91", 100000), &msgptest.Person{}),
			input("50 bin32 of 2 GiB", "\x81\xa5photo\xc6\x80\x00\x00\x00", &msgptest.Person{}),
			input("57 string that is not UTF-8", "\x81\xa4name\xa1\xff", &msgptest.Person{}),
			input("61 wrong type", "\x81\xa4name\x01", &msgptest.Person{}),
			input("trailing garbage", "\x80\x80", &msgptest.Person{}),
		},
	})
}

// A string declared to be longer than the message must not be read from the bytes after the
// message in its buffer.
func TestGencodeStaysInItsBytes(t *testing.T) {
	buffer := make([]byte, 1<<20)
	data := buffer[:copy(buffer, "\xff\xff\x1fx")] // a text of 512 KiB - 1
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := codec.Binary{}.Unmarshal(data, new(gencodetest.Person))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 64<<10 {
		t.Errorf("%v, and %d bytes were allocated for %d", err, used, len(data))
	}
}

// named is a codec without Fits, used only by option.
type named struct{ codec.Codec }

func FuzzGencode(f *testing.F) {
	data, err := codec.Binary{}.Append(nil, gencodePerson())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	codectest.Fuzz(f, codec.Binary{}, &gencodetest.Person{})
}
