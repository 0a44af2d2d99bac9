package anser_test

import (
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
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
	//lint:ignore U1000 the description must leave it out
	private int
	Embedded
}

// Embedded is part of Everything.
type Embedded struct{ Inner string }

type custom struct{}

func (custom) MarshalJSON() ([]byte, error) { return []byte(`"custom"`), nil }

func (custom) UnmarshalJSON([]byte) error { return nil }

// A server without methods has an empty list of them, which is not null.
func TestDescribeNothing(t *testing.T) {
	network := new(ansertest.Network)
	run(t, anser.NewServer(silent), network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	for _, in := range []codec.Codec{new(codec.JSON), msgpack.New()} {
		list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, &anser.None{}, anser.Codec(in))
		if err != nil || list.Methods == nil || len(list.Methods) != 0 {
			t.Errorf("%s: %+v, %v", in.Name(), list, err)
		}
	}
}

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

// Wide contains itself in many ways.
type Wide struct {
	A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T *Wide
	Kids                                                       []Wide
	Named                                                      map[string]Wide
}

// A type that contains itself is described once, however often it occurs, and not at each level
// again.
func TestDescribeOfAWideType(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Wide", func(ctx context.Context, in *Wide) (*Wide, error) { return in, nil })
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, &anser.None{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `"T":null,"Kids":[null],"Named":{"key":null}}`
	if got := string(list.Methods[0].Request.JSON); len(got) > 1000 || !strings.HasSuffix(got, want) {
		t.Errorf("%d bytes: %.1000s", len(got), got)
	}
}

// The members of a oneof exclude each other in the example, and are listed all the same.
func TestDescribeOneof(t *testing.T) {
	s := anser.NewServer(anser.NoSignals())
	if err := anser.Handle(s, "Test.Value", func(_ context.Context, in *structpb.Value) (*anser.None, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() { s.Close(); <-done }()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := anser.Call[anser.MethodList](t.Context(), c, anser.MethodsName, &anser.None{})
	if err != nil || len(list.Methods) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, m := range list.Methods {
		if want := []string{"boolValue", "listValue", "numberValue", "stringValue", "structValue"}; !slices.Equal(m.Request.Others, want) {
			t.Errorf("other keys %q, want %q", m.Request.Others, want)
		}
	}
}

// A protobuf message is described in protobuf's own JSON, under its own name.
func TestDescribeOfProtobuf(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Proto.Field", func(ctx context.Context, in *descriptorpb.FieldDescriptorProto) (*timestamppb.Timestamp, error) {
		return timestamppb.Now(), nil
	})
	anser.Handle(s, "Proto.Any", func(ctx context.Context, in *structpb.Struct) (*structpb.Value, error) { return nil, nil })
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, &anser.None{})
	if err != nil {
		t.Fatal(err)
	}
	field := list.Methods[1]
	if field.Request.Type != "message google.protobuf.FieldDescriptorProto" || field.Reply.Type != "message google.protobuf.Timestamp" {
		t.Errorf("%+v", field)
	}
	if got := string(field.Reply.JSON); got != `"1970-01-01T00:00:00Z"` {
		t.Error(got)
	}
	for _, want := range []string{
		`"name":""`, `"number":0`, `"label":"LABEL_OPTIONAL"`, `"proto3Optional":false`,
		`"uninterpretedOption":[{"name":[{"namePart":"","isExtension":false}],"identifierValue":"","positiveIntValue":"0"`,
	} {
		if !strings.Contains(string(field.Request.JSON), want) {
			t.Errorf("%s is not in %s", want, field.Request.JSON)
		}
	}
	// The example is a message of the type.
	for message, shape := range map[proto.Message]anser.Shape{
		new(structpb.Struct): list.Methods[0].Request, new(structpb.Value): list.Methods[0].Reply,
		new(descriptorpb.FieldDescriptorProto): field.Request, new(timestamppb.Timestamp): field.Reply,
	} {
		if err := protojson.Unmarshal(shape.JSON, message); err != nil {
			t.Errorf("%s: %v: %s", shape.Type, err, shape.JSON)
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
