package benchpb_test

import (
	"bytes"
	"reflect"
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

func TestFilledPlainEqualsFilled(t *testing.T) {
	got, want := reflect.ValueOf(benchpb.FilledPlain()).Elem(), reflect.ValueOf(benchpb.Filled()).Elem()
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		field := want.FieldByName(name)
		if name == "Field5" {
			if got.Field(i).Len() != 0 || field.Len() != 0 {
				t.Errorf("%s is not empty", name)
			}
			continue
		}
		if !got.Field(i).Equal(field.Elem()) {
			t.Errorf("%s = %v, want %v", name, got.Field(i), field.Elem())
		}
	}
}
