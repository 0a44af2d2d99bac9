package stubwire_test

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser/internal/stubwire"
)

func TestPack(t *testing.T) {
	packed := stubwire.Pack(map[string][]string{
		"One": {"1"}, "many": {"a", "b"}, "raw-bin": {"\x00\xff"}, "none": {},
	})
	want := map[string]string{"one": "1", "raw-bin": "\x00\xff", "grpc-values-bin": "\x04many\x01a\x04many\x01b"}
	if !reflect.DeepEqual(packed, want) {
		t.Errorf("packed as %q", packed)
	}
	packed[stubwire.AcceptsKey], packed[stubwire.HeadersKey] = "1", "\x01h\x012"
	got := stubwire.Unpack(packed)
	if !reflect.DeepEqual(got, map[string][]string{"one": {"1"}, "many": {"a", "b"}, "raw-bin": {"\x00\xff"}}) {
		t.Errorf("unpacked as %q", got)
	}
	if h := stubwire.UnpackHeaders(packed); !reflect.DeepEqual(h, map[string][]string{"h": {"2"}}) {
		t.Errorf("the headers are %q", h)
	}
}

// What is cut off is left out, and does not spoil the rest.
func TestUnpackOfOtherForms(t *testing.T) {
	got := stubwire.Unpack(map[string]string{"one": "1", stubwire.ValuesKey: "\x04man"})
	if !reflect.DeepEqual(got, map[string][]string{"one": {"1"}}) {
		t.Errorf("unpacked as %q", got)
	}
	for _, headers := range []string{"\x04man", "\xff", "\x01a"} {
		if h := stubwire.UnpackHeaders(map[string]string{stubwire.HeadersKey: headers}); h != nil {
			t.Errorf("%q is read as headers %q", headers, h)
		}
	}
}

func TestHeaderMessage(t *testing.T) {
	b, err := proto.Marshal(stubwire.HeaderMessage(map[string][]string{"b": {"2", "3"}, "a": {"1"}}))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "\xfa\xe1\x09\x0c\x01a\x011\x01b\x012\x01b\x013"
	if string(b) != golden {
		t.Errorf("the message is %q, want %q", b, golden)
	}
	m := new(emptypb.Empty)
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	md, ok := stubwire.ParseHeaderMessage(m.ProtoReflect().GetUnknown())
	if !ok || !reflect.DeepEqual(md, map[string][]string{"a": {"1"}, "b": {"2", "3"}}) {
		t.Errorf("the headers are %q, %v", md, ok)
	}
	for _, other := range []string{"", "\x08\x01", golden + "\x08\x01", golden[:9], "\xfa\xe1\x09\x02\x04m"} {
		if md, ok := stubwire.ParseHeaderMessage([]byte(other)); ok {
			t.Errorf("%q is read as headers %q", other, md)
		}
	}
}

func FuzzValues(f *testing.F) {
	f.Add("\x04many\x01a\x04many\x01b")
	f.Add("\x04man")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, text string) {
		md := stubwire.UnpackHeaders(map[string]string{stubwire.HeadersKey: text})
		if md == nil {
			return
		}
		again := stubwire.UnpackHeaders(map[string]string{stubwire.HeadersKey: stubwire.PackHeaders(md)})
		if !reflect.DeepEqual(again, md) {
			t.Errorf("%q becomes %q", md, again)
		}
	})
}

func FuzzHeaderMessage(f *testing.F) {
	b, err := proto.Marshal(stubwire.HeaderMessage(map[string][]string{"a": {"1"}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, unknown []byte) {
		md, ok := stubwire.ParseHeaderMessage(unknown)
		if !ok {
			return
		}
		again, ok := stubwire.ParseHeaderMessage(stubwire.HeaderMessage(md).ProtoReflect().GetUnknown())
		if !ok || !reflect.DeepEqual(again, md) {
			t.Errorf("%q becomes %q, %v", md, again, ok)
		}
	})
}
