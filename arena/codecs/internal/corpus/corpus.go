// Package corpus contains messages of several kinds, for comparisons of protobuf codecs.
package corpus

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/internal/benchpb"
)

//go:generate env GOWORK=off go run -C ../../../../internal/tools ./pbgen -root ../.. -vt -anser arena/codecs/internal/corpus/corpus.proto

// Message is a message with all the code that is compared.
type Message interface {
	proto.Message
	Reset()
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// Case is a message with its name.
type Case struct {
	Name    string
	Message Message
	New     func() Message // an empty one
}

// All returns the corpus.
func All() []Case {
	return []Case{
		{"small", &Small{Id: 123456, Name: "a name of 20 letters", Active: true}, func() Message { return new(Small) }},
		{"581 bytes, optional fields", benchpb.Filled(), func() Message { return new(benchpb.BenchmarkMessage) }},
		{"text", texts(), func() Message { return new(Texts) }},
		{"numbers", numbers(), func() Message { return new(Numbers) }},
		{"nested", nested(3), func() Message { return new(Nested) }},
		{"maps", maps(), func() Message { return new(Maps) }},
		{"64 KiB", orders(64 << 10), func() Message { return new(Orders) }},
	}
}

func texts() *Texts {
	m := &Texts{
		Id: "6f9619ff-8b86-d011-b42d-00cf4fc964ff", Title: "许多往事在眼前一幕一幕", Author: "Ada Lovelace",
		Summary: strings.Repeat("The summary of a document. ", 8), Body: strings.Repeat("A sentence of the body. ", 60),
		Signature: []byte(strings.Repeat("\x00\xff", 32)),
	}
	for i := range 12 {
		m.Tags = append(m.Tags, fmt.Sprintf("tag-%d", i))
		m.Lines = append(m.Lines, strings.Repeat("word ", i+4))
	}
	return m
}

func numbers() *Numbers {
	m := &Numbers{A: -1, B: 1 << 40, C: 300, D: 1 << 60, E: -300, F: -1 << 40, G: 1, H: 2, I: 3.5, J: 2.25, K: true, Unit: Unit_UNIT_BYTES}
	for i := range int64(64) {
		m.Small = append(m.Small, int32(i))
		m.Large = append(m.Large, i*i*i*i*i)
		m.Deltas = append(m.Deltas, i-32)
		m.Values = append(m.Values, float64(i)/3)
		m.Hashes = append(m.Hashes, uint32(i)*0x9e3779b1)
		m.Flags = append(m.Flags, i%3 == 0)
	}
	return m
}

func nested(depth int) *Nested {
	m := &Nested{Id: int64(depth) << 30, Seller: party("A Company Ltd."), Buyer: party("Somebody"), Payment: &Nested_Invoice{Invoice: "net 30"}}
	for i := range 5 {
		item := &Nested_Item{Product: fmt.Sprintf("product-%d", i), Count: uint32(i), Price: &Nested_Money{Currency: "EUR", Units: int64(i) * 19, Nanos: 990000000}}
		if i%2 == 0 {
			item.Note = proto.String("a note")
		}
		m.Items = append(m.Items, item)
	}
	if depth > 1 {
		m.Payment = &Nested_Card_{Card: &Nested_Card{Number: "4111111111111111", Month: 12, Year: 2030}}
		m.Before = nested(depth - 1)
	}
	return m
}

func party(name string) *Nested_Party {
	return &Nested_Party{
		Name:     name,
		Place:    &Nested_Place{Street: "1, Long Street", City: "Bergen", Country: "NO", Latitude: 60.39, Longitude: 5.32},
		Contacts: []*Nested_Contact{{Kind: "mail", Value: "somebody@example.com"}, {Kind: "phone", Value: "+47 00 00 00 00"}},
	}
}

func maps() *Maps {
	m := &Maps{Labels: map[string]string{}, Counts: map[int64]int64{}, Parts: map[string]*Small{}}
	for i := range 16 {
		m.Labels[fmt.Sprintf("label-%d", i)] = fmt.Sprintf("value of %d", i)
		m.Counts[int64(i)] = int64(i) * 1000
		if i%2 == 0 {
			m.Parts[fmt.Sprintf("part-%d", i)] = &Small{Id: int64(i), Name: "part"}
		}
	}
	return m
}

func orders(size int) *Orders {
	m := &Orders{Next: "page-2"}
	for proto.Size(m) < size {
		m.Orders = append(m.Orders, nested(1))
	}
	return m
}
