package anser_test

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
)

// Everything is a message with a field of every kind.
type Everything struct {
	Text    string `json:"text"`
	Number  int64  `json:"number,omitempty"`
	Yes     bool
	When    time.Time
	Bytes   []byte
	List    []Args
	Map     map[string]*Reply
	Any     any
	Pointer *float64
	Big     *big.Int
	Custom  custom
	Self    *Everything
	Skipped int `json:"-"`
	private int //lint:ignore U1000 it must not be described
	Embedded
}

// Embedded is part of Everything.
type Embedded struct{ Inner string }

type custom struct{}

func (custom) MarshalJSON() ([]byte, error) { return []byte(`"custom"`), nil }

func (custom) UnmarshalJSON([]byte) error { return nil }

func TestDescribe(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", mul, anser.Idempotent(), anser.Alias("Math.Mul", "A.Mul"), anser.DeprecatedAlias("Old.Mul"))
	anser.Handle(s, "Echo.All", func(ctx context.Context, in *Everything) (*[]byte, error) { return nil, nil })
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	for name, opts := range map[string][]anser.CallOption{"chosen": nil, "json": {anser.Codec(new(codec.JSON))}} {
		list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, &anser.None{}, opts...)
		if err != nil {
			t.Fatal(name, err)
		}
		got, _ := json.MarshalIndent(list, "", "  ")
		const want = `{
  "methods": [
    {
      "name": "Arith.Mul",
      "aliases": [
        "A.Mul",
        "Math.Mul",
        "Old.Mul"
      ],
      "request": {
        "type": "anser_test.Args",
        "json": {
          "A": 0,
          "B": 0
        }
      },
      "reply": {
        "type": "anser_test.Reply",
        "json": {
          "C": 0
        }
      },
      "idempotent": true
    },
    {
      "name": "Echo.All",
`
		if len(got) < len(want) || string(got[:len(want)]) != want {
			t.Errorf("%s: %s", name, got)
		}
		var example map[string]any
		if err := json.Unmarshal(list.Methods[1].Request.JSON, &example); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"text", "number", "Yes", "When", "Bytes", "List", "Map", "Any", "Pointer", "Big", "Custom", "Self", "Inner"} {
			if _, ok := example[field]; !ok {
				t.Errorf("%s: no example of %s: %v", name, field, example)
			}
		}
		for _, field := range []string{"Skipped", "-", "private", "Embedded"} {
			if _, ok := example[field]; ok {
				t.Errorf("%s: an example of %s", name, field)
			}
		}
		// The example is a message of the type.
		var message Everything
		if err := json.Unmarshal(list.Methods[1].Request.JSON, &message); err != nil {
			t.Error(err)
		}
		if r := list.Methods[1].Reply; r.Type != "[]uint8" || string(r.JSON) != `""` {
			t.Errorf("%+v", r)
		}
	}
}

func TestNoDescribe(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.NoDescribe())
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	_, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, &anser.None{})
	wantFault(t, err, anser.Unimplemented, anser.Refused)
	_, err = call(context.Background(), c, "Echo.Sya", "")
	if e := wantFault(t, err, anser.Unimplemented, anser.Refused); e.Message != `method "Echo.Sya" is not served here` {
		t.Error("the message tells what the server has:", e.Message)
	}
}
