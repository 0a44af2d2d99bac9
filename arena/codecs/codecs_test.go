package main

import (
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// Every codec gives back what it was given, and what it was given is the message of the workload.
func TestSubjects(t *testing.T) {
	subjects, err := all()
	if err != nil {
		t.Fatal(err)
	}
	for i := range subjects {
		s := &subjects[i]
		data, err := s.check()
		if err != nil {
			t.Errorf("%s of %s: %v", s.name, s.module, err)
			continue
		}
		if len(data) < 400 {
			t.Errorf("%s of %s: %d bytes cannot hold the message", s.name, s.module, len(data))
		}
		if strings.HasPrefix(s.name, "protobuf") && len(data) != workload.StandardPayload {
			t.Errorf("%s: %d bytes", s.name, len(data))
		}
	}
}

// The struct for the codecs without protobuf has the fields of the message, with their values.
func TestData(t *testing.T) {
	message, err := workload.NewMessage(workload.StandardPayload)
	if err != nil {
		t.Fatal(err)
	}
	converted := new(workload.BenchmarkMessage)
	convert(converted, benchpb.FilledPlain())
	if err := differ(message, converted); err != nil {
		t.Error(err)
	}
}

func TestDiffer(t *testing.T) {
	a, b := benchpb.FilledPlain(), benchpb.FilledPlain()
	b.Field5 = []uint64{}
	if err := differ(a, b); err != nil {
		t.Error(err)
	}
	b.Field271++
	if err := differ(a, b); err == nil || !strings.Contains(err.Error(), "Field271 is 100001") {
		t.Errorf("%v", err)
	}
	b.Field271--
	b.Field5 = []uint64{1}
	if err := differ(a, b); err == nil {
		t.Error("a slice may be longer")
	}
	if err := differ(a, new(Message)); err == nil {
		t.Error("types may differ")
	}
}

func TestByHand(t *testing.T) {
	data, err := (*byHand)(benchpb.FilledPlain()).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for end := range data {
		if err := new(byHand).UnmarshalBinary(data[:end]); err == nil {
			t.Fatalf("%d of %d bytes are enough", end, len(data))
		}
	}
	if err := new(byHand).UnmarshalBinary(append(data, 0)); err == nil {
		t.Error("more bytes are no mistake")
	}
}

func TestMeasure(t *testing.T) {
	subjects, err := all()
	if err != nil {
		t.Fatal(err)
	}
	results, err := measure(subjects[:2], 3*time.Millisecond)
	if err != nil || len(results) != 2 {
		t.Fatalf("%+v, %v", results, err)
	}
	for _, r := range results {
		if r.EncodeNS <= 0 || r.DecodeNS <= 0 || r.Bytes != workload.StandardPayload || r.DecodeAllocs < 1 || !r.Anser || r.Name == "" || r.Language != "go" {
			t.Errorf("%+v", r)
		}
	}
	broken := subjects[0]
	broken.decode = func([]byte) (any, error) { return new(Message), nil }
	if _, err := measure([]subject{broken}, time.Millisecond); err == nil || !strings.Contains(err.Error(), "decoded is a *main.Message") {
		t.Errorf("%v", err)
	}
}
