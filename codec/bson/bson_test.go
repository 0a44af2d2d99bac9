package bson_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mongo "go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/bson"
	"github.com/anser-rpc/anser/codec/codectest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type document struct {
	Name  string `bson:"title"`
	Bytes []byte
	Map   map[string]string
	List  []document
	Any   any
	Float float64
	Small int32
	Large int64
	Next  *document
	At    time.Time
	ID    mongo.ObjectID
	Func  func() `bson:"-"`
}

func newDocument() *document {
	return &document{
		Name: "变", Bytes: []byte("bytes\xff"), Map: map[string]string{"k": "v"},
		List: []document{{Name: "inner", At: time.Unix(1, 0).UTC()}}, Any: mongo.D{{Key: "x", Value: mongo.A{1.5, "two", nil, true, int32(3)}}},
		Float: 1e300, Small: -3, Large: 1 << 40, Next: &document{At: time.Unix(2, 0).UTC()}, At: time.Unix(5, 6e6).UTC(), ID: mongo.ObjectID{1, 2, 3},
	}
}

// reckless panics on a peer's bytes.
type reckless struct{ A int }

func (reckless) MarshalBSON() ([]byte, error) { return mongo.Marshal(mongo.D{}) }
func (*reckless) UnmarshalBSON([]byte) error  { panic("reckless") }

type tree struct {
	Kids []*tree
	Any  any
}

// doc wraps elements in a document.
func doc(elements string) string {
	n := len(elements) + 5
	return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) + elements + "\x00"
}

func nested(kind string, n int) string {
	s := doc("")
	for range n {
		s = doc(kind + "a\x00" + s)
	}
	return s
}

func hostile() []codectest.Input {
	var all []codectest.Input
	for name, data := range map[string]string{
		"45 raw bytes":                  "some text",
		"46 nothing":                    "",
		"46 a length alone":             "\x05\x00\x00\x00",
		"47 array of 2^31 - 1 bytes":    doc("\x04list\x00\xff\xff\xff\x7f\x00"),
		"48 document of 2^31 - 1 bytes": "\xff\xff\xff\x7f\x00",
		"48 document of -1 bytes":       "\xff\xff\xff\xff\x00",
		"49 65 documents":               nested("\x03", 65),
		"49 65 arrays":                  nested("\x04", 65),
		"49 10,000 documents":           nested("\x03", 10000),
		"49 never ends":                 strings.Repeat("\xff\xff\x00\x00\x03a\x00", 50000),
		"50 binary of 2 GiB":            doc("\x05bytes\x00\xff\xff\xff\x7f\x00x"),
		"50 binary of -1":               doc("\x05bytes\x00\xff\xff\xff\xff\x00x"),
		"50 old binary of 2 GiB":        doc("\x05bytes\x00\x05\x00\x00\x00\x02\xff\xff\xff\x7fx"),
		"50 string of 2 GiB":            doc("\x02title\x00\xff\xff\xff\x7fx\x00"),
		"50 string without an end":      doc("\x02title\x00\x02\x00\x00\x00xx"),
		"57 a string that is not UTF-8": doc("\x02title\x00\x02\x00\x00\x00\xff\x00"),
		"57 a name that is not UTF-8":   doc("\x0a\xff\x00"),
		"a type that is not there":      doc("\x20a\x00"),
		"a boolean of 2":                doc("\x08a\x00\x02"),
		"trailing garbage":              doc("") + "x",
	} {
		for _, into := range []any{&document{}, new(map[string]any), new(mongo.D), new(mongo.M), &tree{}} {
			all = append(all, codectest.Input{Name: name, Data: []byte(data), Into: into})
		}
	}
	return append(all,
		codectest.Input{Name: "61 wrong type", Data: []byte(doc("\x10title\x00\x01\x00\x00\x00")), Into: &document{}},
		codectest.Input{Name: "61 number out of range", Data: []byte(doc("\x12small\x00\xff\xff\xff\xff\xff\xff\xff\x00")), Into: &document{}},
		codectest.Input{Name: "62 a method that panics", Data: []byte(doc("")), Into: &reckless{}},
	)
}

func TestConformance(t *testing.T) {
	codectest.Run(t, codectest.Suite{
		Codec:   bson.New(),
		Values:  []any{newDocument(), &map[string]int32{"a": 1}, &mongo.D{{Key: "a", Value: "b"}}},
		Misfits: []any{new(int), new([]string), new(chan int), &struct{ C chan int }{}, new(any), new(time.Time), new(map[int]string)},
		Hostile: hostile(),
	})
	if c := bson.New(); c.ID() != codec.BSONID || c.Name() != "bson" {
		t.Error(c.ID(), c.Name())
	}
}

// The bytes are those of the example on bsonspec.org.
func TestGolden(t *testing.T) {
	got, err := bson.New().Append(nil, &struct{ Hello string }{"world"})
	if want := "160000000268656c6c6f0006000000776f726c640000"; err != nil || fmt.Sprintf("%x", got) != want {
		t.Errorf("%x, %v", got, err)
	}
}

func TestAppendRefusesWhatContainsItself(t *testing.T) {
	kid := &tree{}
	kid.Kids = []*tree{{}, kid}
	m := map[string]any{}
	m["m"] = m
	for _, v := range []any{kid, &m} {
		if _, err := bson.New().Append(nil, v); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
			t.Errorf("Append(%T) = %v", v, err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	c := bson.New()
	data, err := c.Append(nil, newDocument())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, in := range hostile() {
		if len(in.Data) < 100 {
			f.Add(in.Data)
		}
	}
	codectest.Fuzz(f, c, &document{}, &tree{}, new(mongo.D), new(map[string]any), &reckless{})
}

func BenchmarkPlain(b *testing.B) { codectest.Bench(b, bson.New(), newDocument()) }
