package benchpb_test

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func TestFilledIs581Bytes(t *testing.T) {
	m := benchpb.Filled()
	std, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(std) != 581 {
		t.Errorf("proto.Marshal: %d bytes, want 581", len(std))
	}
	vt, err := m.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(std, vt) {
		t.Errorf("vtproto's bytes differ:\n%x\n%x", vt, std)
	}
}

func TestFilledSetsEveryField(t *testing.T) {
	r := benchpb.Filled().ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Cardinality() != protoreflect.Repeated && !r.Has(f) {
			t.Errorf("%s is not set", f.Name())
		}
	}
}

func TestAnswer(t *testing.T) {
	m := benchpb.Filled()
	if benchpb.Answered(m) {
		t.Error("a request passes for a reply")
	}
	benchpb.Answer(m)
	if !benchpb.Answered(m) {
		t.Error("a reply does not pass for one")
	}
}
