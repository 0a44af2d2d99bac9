package hessian2_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/codectest"
	"github.com/anser-rpc/anser/codec/hessian2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type user struct {
	Name    string
	Age     int32
	Large   int64
	Photo   []byte
	Tags    []string
	Scores  map[string]string
	Home    *address
	Friends []*user
	Born    time.Time
	Height  float64
	Happy   bool
}

func (*user) JavaClassName() string { return "example.User" }

type address struct{ Street string }

func (*address) JavaClassName() string { return "example.Address" }

type stranger struct{ Name string }

func (*stranger) JavaClassName() string { return "example.Stranger" }

func newUser() *user {
	return &user{
		Name: "变 and 🦢 " + strings.Repeat("long ", 20), Age: -7, Large: 1 << 40, Photo: []byte("photo\xff"), Tags: []string{"a", "b"},
		Scores: map[string]string{"x": "1"}, Home: &address{"Main"},
		Friends: []*user{{Name: "Bob", Born: time.UnixMilli(0)}, {Name: "Cem", Born: time.UnixMilli(5), Home: &address{"Side"}}},
		Born:    time.UnixMilli(1700000000123), Height: 1.75, Happy: true,
	}
}

func newCodec() *hessian2.Codec { return hessian2.New(new(user), new(address)) }

func class(name string, fields ...string) string {
	s := "C" + string([]byte{byte(len(name))}) + name + string([]byte{byte(0x90 + len(fields))})
	for _, f := range fields {
		s += string([]byte{byte(len(f))}) + f
	}
	return s
}

func hostile() []codectest.Input {
	in := func(name, data string) codectest.Input {
		return codectest.Input{Name: name, Data: []byte(data), Into: &user{}}
	}
	with := func(field, value string) string { return class("example.User", field) + "\x60" + value }
	return []codectest.Input{
		in("45 raw bytes to a struct", "some text"),
		in("46 nothing", ""),
		in("47 list of 2^31 - 1", with("tags", "\x58I\x7f\xff\xff\xff")),
		in("47 list of -1", with("tags", "\x58I\xff\xff\xff\xff")),
		in("47 typed list of 2^31 - 1", with("tags", "V\x07[stringI\x7f\xff\xff\xff")),
		in("47 class with 2^31 - 1 fields", "C\x0cexample.UserI\x7f\xff\xff\xff"),
		in("48 map that never ends", with("scores", "H"+strings.Repeat("\x01a\x01b", 1000))),
		in("49 100,000 lists", with("tags", strings.Repeat("\x79", 100000))),
		in("49 65 lists", with("tags", strings.Repeat("\x79", 65)+"N")),
		in("49 recursive class", class("example.User", "friends")+strings.Repeat("\x60\x79", 1000)+"N"),
		in("49 100,000 chunks that never end", with("name", strings.Repeat("R\x00\x00", 100000))),
		in("50 bytes that are not there", with("photo", "B\xff\xffx")),
		in("50 text that is not there", with("name", "S\xff\xffx")),
		in("57 text that is not UTF-8", with("name", "\x01\xff")),
		in("57 half a surrogate pair", with("name", "\x02\xed\xa0\xbdab")),
		in("57 four bytes for a character", with("name", "\x02🦢")),
		in("61 a number for a list", with("tags", "\x91")),
		in("61 a list for a number", with("age", "\x79\x91")),
		in("61 another class", class("example.Address", "street")+"\x60\x01a"),
		in("an unknown class", class("example.Stranger", "name")+"\x60\x01a"),
		in("a class of the library", class("java.lang.Throwable", "detailMessage")+"\x60\x01a"),
		in("a class that was not defined", "\x61"),
		in("a value that was not there", with("home", "\x51\x95")),
		in("a list of lists of lists of lists", with("tags", "V\x0a[[[[string\x90")),
		in("a list of an unknown type", with("tags", "V\x04what\x90")),
		in("an unknown tag", with("tags", "\x40")),
		in("trailing garbage", with("age", "\x91")+"N"),
	}
}

func TestConformance(t *testing.T) {
	c := newCodec()
	codectest.Run(t, codectest.Suite{
		Codec:   c,
		Values:  []any{newUser(), &address{"Main"}},
		Misfits: []any{new(int), &stranger{"x"}, new([]string), "text"},
		Hostile: hostile(),
		Equal:   func(a, b any) bool { return dump(a) == dump(b) },
	})
	if c.ID() != codec.Hessian2ID || c.Name() != "hessian2" {
		t.Error(c.ID(), c.Name())
	}
}

func dump(v any) string {
	if u, ok := v.(*user); ok {
		s := fmt.Sprint(u.Name, u.Age, u.Large, u.Photo, u.Tags, u.Scores, u.Born.UnixMilli(), u.Height, u.Happy)
		if u.Home != nil {
			s += u.Home.Street
		}
		for _, f := range u.Friends {
			s += dump(f)
		}
		return s
	}
	return fmt.Sprintf("%+v", v)
}

// The bytes are those written by the Java library.
func TestGolden(t *testing.T) {
	got, err := newCodec().Append(nil, &address{"Main"})
	if want := class("example.Address", "street") + "\x60\x04Main"; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// Unknown fields are skipped, but only a limited number of names: the library keeps each.
func TestUnknownFields(t *testing.T) {
	c := newCodec()
	var failed error
	for i := range 2000 {
		data := class("example.Address", fmt.Sprintf("new%d", i), "street") + "\x60\x01x\x01a"
		got := new(address)
		if err := c.Unmarshal([]byte(data), got); err != nil {
			failed = err
			if i < 1000 {
				t.Fatal(i, err)
			}
		} else if got.Street != "a" {
			t.Fatalf("%+v", got)
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "1000 names") {
		t.Error("2,000 names were taken:", failed)
	}
}

func TestAppendRefusesWhatContainsItself(t *testing.T) {
	u := newUser()
	u.Friends = append(u.Friends, u)
	if _, err := newCodec().Append(nil, u); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Error(err)
	}
}

type wrong struct{ C chan int }

func (*wrong) JavaClassName() string { return "example.Wrong" }

func TestNewSaysWhatIsWrong(t *testing.T) {
	c := hessian2.New(new(wrong))
	if _, err := c.Append(nil, new(wrong)); err == nil || !strings.Contains(err.Error(), "chan int") || c.Fits(new(wrong)) {
		t.Error(err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	c := newCodec()
	data, err := c.Append(nil, newUser())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, in := range hostile() {
		if len(in.Data) < 300 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, c, &user{}, &address{})
}

func BenchmarkPlain(b *testing.B) { codectest.Bench(b, newCodec(), newUser()) }
