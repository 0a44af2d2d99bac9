package main

import (
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/codecs/internal/corpus"
	"github.com/anser-rpc/anser/codec/protobuf/pbrt"
	"google.golang.org/protobuf/proto"
)

// All codecs make the same of the messages, and the table has a row for each direction.
func TestTable(t *testing.T) {
	var b strings.Builder
	if err := run(&b, 1, time.Microsecond, ""); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if want := 2 + 2*len(corpus.All()); len(lines) != want {
		t.Errorf("%d lines, want %d:\n%s", len(lines), want, b.String())
	}
	for _, line := range lines {
		if strings.Count(line, "|") != 9 {
			t.Errorf("the row %s has not 8 cells", line)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range corpus.All() {
		size := proto.Size(c.Message)
		if c.Name == "64 KiB" && (size < 64<<10 || size > 66<<10) || c.Name == "small" && size > 32 || c.Name[:3] == "581" && size != 581 {
			t.Errorf("%s has %d bytes", c.Name, size)
		}
	}
}

// wrong is a message that one codec encodes in another way.
type wrong struct{ corpus.Message }

func (wrong) SizeVT() int { return 1 }

func (wrong) MarshalToSizedBufferVT([]byte) (int, error) { return 1, nil }

func TestDifferentEncodingIsFound(t *testing.T) {
	c := corpus.All()[0]
	c.Message = wrong{c.Message}
	if _, err := newTrial(c); err == nil {
		t.Error("an encoding of one byte is taken")
	}
}

// What is measured of Anser's code goes through it.
func TestGeneratedCodeIsUsed(t *testing.T) {
	for _, c := range corpus.All() {
		if _, ok := c.Message.(pbrt.Message); !ok {
			t.Errorf("%T has no generated code", c.Message)
		}
	}
}
