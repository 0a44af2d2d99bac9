// Package sample has methods of every kind, to be described and called.
package sample

import (
	"context"
	"encoding/json"
	"math/big"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/grpcstubs"
	"github.com/anser-rpc/anser/internal/test/protocols/librarypb"
)

// kinds answers with what it gets.
type kinds struct {
	librarypb.UnimplementedKindsServer
}

func (kinds) Echo(_ context.Context, in *librarypb.Everything) (*librarypb.Everything, error) {
	return in, nil
}

func (kinds) Old(context.Context, *librarypb.Create) (*emptypb.Empty, error) {
	return new(emptypb.Empty), nil
}

func (kinds) Tell(context.Context, *librarypb.Create) error { return nil }

func (kinds) Chat(_ context.Context, st *anser.Stream[librarypb.Create, librarypb.Create]) error {
	for m, err := range st.All() {
		if err != nil {
			return err
		}
		if err := st.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// olds answers with what it gets.
type olds struct {
	librarypb.UnimplementedOldsServer
}

func (olds) Echo(_ context.Context, in *librarypb.Old) (*librarypb.Old, error) { return in, nil }

// The types have what encoding/json knows.
type (
	// Base is embedded.
	Base struct {
		ID    int64  `json:"id"`
		Label string `json:"label"` // hidden by that of Thing
	}
	// Page is a part of a list.
	Page[T any] struct {
		Items []T     `json:"items"`
		Next  *string `json:"next"`
	}
	// Tree contains itself.
	Tree map[string]Tree
	// Text and Own marshal themselves.
	Text struct{ s string }
	// Own is described with Text.
	Own struct{ n int }
	// Thing has a field of each kind.
	Thing struct {
		Base
		*extra
		Label    string            `json:"label,omitempty"`
		Small    int8              `json:"small"`
		Medium   uint16            `json:"medium"`
		Big      uint64            `json:"big"`
		Ratio    float64           `json:"ratio"`
		Truth    bool              `json:"truth"`
		Bytes    []byte            `json:"bytes"`
		Fixed    [3]int32          `json:"fixed"`
		Digest   [2]byte           `json:"digest"`
		Words    []string          `json:"words"`
		Some     []string          `json:"some,omitempty"`
		ByName   map[string]*Thing `json:"by_name"`
		ByNumber map[int]bool      `json:"by_number,omitempty"`
		At       time.Time         `json:"at"`
		Wait     time.Duration     `json:"wait"`
		Raw      json.RawMessage   `json:"raw"`
		Number   json.Number       `json:"number"`
		Huge     *big.Int          `json:"huge"`
		Addr     netip.Addr        `json:"addr"`
		Text     Text              `json:"text"`
		Own      Own               `json:"own"`
		Any      any               `json:"any"`
		Parent   *Thing            `json:"parent"`
		Kids     []Thing           `json:"kids,omitempty"`
		Tree     Tree              `json:"tree"`
		Quoted   int64             `json:"quoted,string"`
		Gone     time.Time         `json:"gone,omitzero"`
		Page     Page[Base]        `json:"page"`
		Inline   struct {
			X int `json:"x"`
		} `json:"inline"`
		Hidden string `json:"-"`
	}
	extra struct {
		Note string `json:"note"`
	}
)

// MarshalText writes the text in angle brackets.
func (t Text) MarshalText() ([]byte, error) { return []byte("<" + t.s + ">"), nil }

// UnmarshalText reads what MarshalText writes.
func (t *Text) UnmarshalText(b []byte) error { t.s = strings.Trim(string(b), "<>"); return nil }

// MarshalJSON writes an array.
func (o Own) MarshalJSON() ([]byte, error) { return json.Marshal([]int{o.n}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Own) UnmarshalJSON(b []byte) error {
	var list []int
	if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
		return err
	}
	o.n = list[0]
	return nil
}

// Full returns a thing with a value in each field.
func Full() *Thing {
	return &Thing{
		Base: Base{ID: 1}, extra: &extra{"note"}, Label: "label", Bytes: []byte{1, 2, 3}, Words: []string{}, ByName: map[string]*Thing{"x": nil, "y": {}},
		ByNumber: map[int]bool{-3: true}, Raw: json.RawMessage(`[1,{"a":null}]`), Number: "1.5e3", Huge: new(big.Int).Lsh(big.NewInt(1), 80),
		Addr: netip.MustParseAddr("::1"), Text: Text{"t"}, Own: Own{5}, Any: map[string]any{"q": 1}, Parent: new(Thing), Kids: []Thing{{}},
		Tree: Tree{"a": {"b": nil}}, Quoted: -5, Gone: time.Now(), Page: Page[Base]{Items: []Base{{}}}, Small: -128, Medium: 65535, Big: 1 << 63,
	}
}

// Letter and Receipt are messages of a contract.
type (
	// Letter is a request.
	Letter struct {
		To   string `json:"to"`
		Text string `json:"text"`
	}
	// Receipt is its reply.
	Receipt struct {
		Number int64 `json:"number"`
	}
)

var mail = contract.NewSource(`{"kind":"kiss","services":[{"name":"Mail","doc":"Mail sends letters.","methods":[
{"name":"Send","doc":"Send takes a letter. It is delivered later.","request":"Letter","reply":"Receipt"},{"name":"Drop","doc":"Drop forgets one.","request":"Letter","reply":"","oneway":true}]}],"messages":[
{"name":"Letter","doc":"Letter is what is sent.","form":"names","fields":[{"name":"to","doc":"to is the address.","number":1,"presence":"required","type":{"name":"string"}},{"name":"text","number":2,"deprecated":true,"type":{"name":"string"}}]},
{"name":"Receipt","doc":"Receipt says that a letter was sent.","form":"names","fields":[{"name":"number","number":1,"type":{"name":"int64"}}]}]}`)

// Add serves a method of every kind.
func Add(s *anser.Server) {
	librarypb.RegisterLibraryServer(s, new(Library))
	librarypb.RegisterKindsServer(s, kinds{})
	librarypb.RegisterOldsServer(s, olds{})
	pb.RegisterTestServiceServer(grpcstubs.NewRegistrar(s), interop.NewTestServer())
	anser.Handle(s, "Things.Echo", func(_ context.Context, in *Thing) (*Thing, error) { return in, nil })
	anser.Handle(s, "Things.New", func(context.Context, *anser.None) (*Thing, error) { return new(Thing), nil })
	anser.Handle(s, "Things.Words", func(_ context.Context, in *[]string) (*map[string]int, error) {
		return &map[string]int{"n": len(*in)}, nil
	})
	anser.Handle(s, "Things.Nothing", func(context.Context, *[]string) (*map[string]int, error) { return new(map[string]int), nil })
	anser.Handle(s, "Things.Number", func(_ context.Context, in *int) (*float64, error) { out := float64(*in); return &out, nil })
	anser.Handle(s, "Things.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Things.Packed", func(_ context.Context, in *Letter) (*Letter, error) { return in, nil }, anser.OnlyCodecs(msgpack.New()))
	anser.Handle(s, "Things.Fail", func(context.Context, *anser.None) (*anser.None, error) {
		return nil, anser.Errorf(anser.FailedPrecondition, "not now").WithDetails([]byte("why")).WithRetryAfter(time.Second)
	})
	s.RegisterFunc("Things.Divide", func(_ context.Context, a, b int) (int, *librarypb.Book, error) {
		return a / b, &librarypb.Book{Pages: 3}, nil
	}, anser.Params("(a, b) (quotient, book)"))
	anser.Handle(s, "Things.Once", func(_ context.Context, in *Letter) (*Receipt, error) { return new(Receipt), nil }, anser.Deduplicate())
	s.RegisterFunc("Things.Now", func(context.Context) (time.Time, error) { return time.Now(), nil })
	anser.Handle(s, "Mail.Send", func(context.Context, *Letter) (*Receipt, error) { return &Receipt{7}, nil }, anser.Contract(mail))
	anser.OnewayMethod[Letter]("Mail.Drop").Handle(s, func(context.Context, *Letter) error { return nil }, anser.Contract(mail))
	anser.ServerStreamMethod[Thing, Receipt]("Things.Count").Handle(s, func(_ context.Context, _ *Thing, out anser.Sender[Receipt]) error {
		for i := range int64(3) {
			if err := out.Send(&Receipt{i}); err != nil {
				return err
			}
		}
		return anser.Errorf(anser.DataLoss, "the end is lost")
	})
	anser.ServerStreamMethod[anser.None, Receipt]("Things.Tick").Handle(s, func(ctx context.Context, _ *anser.None, out anser.Sender[Receipt]) error {
		for i := range int64(2) {
			if err := out.Send(&Receipt{i}); err != nil {
				return err
			}
		}
		<-ctx.Done() // the caller cancels
		return ctx.Err()
	})
	anser.ClientStreamMethod[Letter, Receipt]("Things.Sum").Handle(s, func(_ context.Context, in anser.Receiver[Letter]) (*Receipt, error) {
		out := new(Receipt)
		for _, err := range in.All() {
			if err != nil {
				return nil, err
			}
			out.Number++
		}
		return out, nil
	})
}
