package fbs_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// features loads the file that has every feature.
func features(t *testing.T) *fbs.File {
	t.Helper()
	s, err := new(fbs.Loader).Load("testdata/features.fbs")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Files) != 2 || s.Files[0].Given || !s.Files[1].Given || s.Files[1].Includes[0].File != s.Files[0] {
		t.Fatalf("the files are %+v", s.Files)
	}
	return s.Files[1]
}

func object(t *testing.T, f *fbs.File, name string) *fbs.Object {
	t.Helper()
	for _, o := range f.Objects {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

func field(t *testing.T, o *fbs.Object, name string) *fbs.Field {
	t.Helper()
	for _, f := range o.Fields {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("%s has no %s", o.Name, name)
	return nil
}

func TestEnums(t *testing.T) {
	f := features(t)
	for i, want := range []string{
		"features.deep.Color ubyte Red=1 Green=2 Blue=8",
		"features.deep.Level short Low=-5 Middle=-4 High=16",
		"features.deep.Big ulong None=0 Huge=-1",
		"features.deep.Tiny byte A=0",
		"features.deep.Thing utype NONE=0 Named=1 Point=2 Alias=3 shared_Part=4 note=5",
	} {
		e := f.Enums[i]
		got := e.FullName() + " " + e.Type.String()
		for _, v := range e.Values {
			got += " " + v.Name + "=" + itoa(v.Number)
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	color := f.Enums[0]
	if !color.Flags || fbs.Text(color.Doc) != "Colors have bits.\nTwo lines." || fbs.Text(color.Values[1].Doc) != "It is green." || color.Values[0].Doc != nil {
		t.Errorf("Color is %+v", color)
	}
	thing := f.Enums[4]
	if !thing.Union || thing.Values[4].Type.String() != "features.shared.Part" || !thing.Values[2].Type.Struct() || thing.Values[5].Type.Base != fbs.String {
		t.Errorf("Thing is %+v", thing)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestStructs(t *testing.T) {
	f := features(t)
	var got []string
	shape := object(t, f, "Shape")
	for _, field := range shape.Fields {
		got = append(got, field.Name+" "+field.Type.String()+" "+itoa(int64(field.Offset))+"+"+itoa(int64(field.Padding)))
	}
	want := []string{
		"kind features.deep.Tiny 0+3", "corner features.deep.Point 4+4", "weights [double:3] 16+0",
		"corners [features.deep.Point:2] 40+0", "flags [features.deep.Color:4] 56+0", "on bool 60+3",
	}
	if !slices.Equal(got, want) || shape.Align != 16 || shape.Size != 64 || shape.Key.Name != "corner" {
		t.Errorf("Shape has %q, alignment %d, size %d", got, shape.Align, shape.Size)
	}
}

func TestDefaults(t *testing.T) {
	o := object(t, features(t), "Everything")
	for name, want := range map[string]int64{
		"a_bool": 1, "a_byte": -128, "a_ubyte": 255, "a_short": 127, "a_ushort": 0, "an_int": 5, "a_uint": math.MaxUint32,
		"a_long": math.MinInt64, "a_ulong": math.MaxInt64, "a_string_number": 7, "color": 8, "colors": 3, "level": 16, "level_number": 16,
		"plain": 16, "maybe": 0,
	} {
		if got := field(t, o, name).Default.Int; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]float64{
		"a_float": 1.5, "a_double": .5e-3, "an_inf": math.Inf(-1), "a_nan": math.NaN(), "an_angle": 3.14159265359, "a_hex_float": 12,
	} {
		if got := field(t, o, name).Default.Float; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"maybe", "maybe_color", "maybe_bool", "point", "shared_text", "things"} {
		if f := field(t, o, name); !f.Optional || f.Required {
			t.Errorf("%s is %+v", name, f)
		}
	}
	if f := field(t, o, "text_default"); f.Default.Text != "it is \"here\"\nAB" || f.Optional {
		t.Errorf("text_default is %+v", f)
	}
	if f := field(t, o, "ints"); !f.Default.Given || f.Optional {
		t.Errorf("ints is %+v", f)
	}
	if f := field(t, o, "text"); !f.Required || f.At.String() != "testdata/features.fbs:73:3" {
		t.Errorf("text is %+v", f)
	}
}

// Numbers beyond those of int64 are kept by their bits. flatc writes 0 for them into a binary
// schema.
func TestLargestDefault(t *testing.T) {
	s, err := fbs.Parse("a.fbs", []byte("enum E:ulong { A, B = 18446744073709551615 } table T { a:ulong = 18446744073709551615; b:E = B; }"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Files[0].Objects[0].Fields {
		if f.Default.Int != -1 {
			t.Errorf("%s is %d", f.Name, f.Default.Int)
		}
	}
}

func TestTables(t *testing.T) {
	f := features(t)
	o := object(t, f, "Everything")
	thing := field(t, o, "thing")
	if thing.TypeField.Slot() != thing.Slot()-1 || thing.TypeField.Name != "thing_type" || !thing.Required {
		t.Errorf("thing is %+v", thing)
	}
	if things := field(t, o, "things"); things.TypeField.Type.Element != fbs.UType {
		t.Errorf("things is %+v", things)
	}
	if other := field(t, o, "other"); !other.Deprecated || !other.TypeField.Deprecated {
		t.Errorf("other is %+v", other)
	}
	if nested := field(t, o, "nested"); nested.Nested == nil || nested.Nested.Name != "Named" {
		t.Errorf("nested is %+v", nested)
	}
	if parent := field(t, o, "parent"); parent.Type.Object != object(t, f, "Later") {
		t.Errorf("parent is %+v", parent)
	}
	var order []string
	for _, f := range object(t, f, "Numbered").Fields {
		order = append(order, f.Name)
	}
	if got := strings.Join(order, " "); got != "a u_type u c" {
		t.Errorf("the fields of Numbered are %s", got)
	}
	if f.Root != o || f.Identifier != "FEAT" || f.Extension != "feat" {
		t.Errorf("the file is %+v", f)
	}
	if a := object(t, f, "Named").Attributes; len(a) != 2 || a.Get("owner").Value != "us" || !a.Get("owner").Text || a.Get("none") != nil {
		t.Errorf("the attributes are %+v", a)
	}
}

func TestServices(t *testing.T) {
	s := features(t).Services[0]
	if s.FullName() != "features.deep.Things" || fbs.Text(s.Doc) != "Things come and go." || fbs.Text(s.Methods[0].Doc) != "Get gets one." {
		t.Errorf("the service is %+v", s)
	}
	var got []string
	for _, m := range s.Methods {
		kind := m.Name
		for name, is := range map[string]bool{" client": m.ClientStream, " server": m.ServerStream} {
			if is {
				kind += name
			}
		}
		if m.Idempotent {
			kind += " idempotent"
		}
		if m.Oneway {
			kind += " oneway " + m.Reply.FullName()
		}
		got = append(got, strings.TrimSuffix(strings.TrimSuffix(kind, " server client"), " client server"))
		if m.Name == "Talk" && !(m.ClientStream && m.ServerStream) {
			t.Errorf("Talk is %+v", m)
		}
	}
	if want := []string{"Get idempotent", "Put oneway features.shared.Empty", "Watch server", "Load client", "Talk", "Old"}; !slices.Equal(got, want) {
		t.Errorf("the methods are %q", got)
	}
}
