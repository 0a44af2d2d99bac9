package conformance_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/conformance"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields of a request, and of an answer.
const (
	protobufPayload, jsonPayload, output, messageType, textPayload = 1, 2, 3, 4, 8

	parseError, runtimeError, protobufResult, jsonResult, skipped, serializeError, textResult = 1, 2, 3, 4, 5, 6, 8
)

// Formats of output.
const (
	asProtobuf = 1
	asJSON     = 2
	asJSPB     = 3
	asText     = 4
)

const addRequest = "anser.bench.AddRequest"

func request(field protowire.Number, payload, name string, format uint64) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), payload)
	b = protowire.AppendVarint(protowire.AppendTag(b, output, protowire.VarintType), format)
	b = protowire.AppendString(protowire.AppendTag(b, messageType, protowire.BytesType), name)
	return protowire.AppendFixed32(protowire.AppendTag(b, 99, protowire.Fixed32Type), 1) // unknown
}

func framed(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// ask returns the field of the answer, and its value.
func ask(t *testing.T, q []byte) (protowire.Number, string) {
	t.Helper()
	var out bytes.Buffer
	if err := conformance.Serve(bytes.NewReader(framed(q)), &out, protobuf.New()); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	if len(b) < 4 || int(binary.LittleEndian.Uint32(b)) != len(b)-4 {
		t.Fatalf("the answer is %x", b)
	}
	number, _, n := protowire.ConsumeTag(b[4:])
	value, m := protowire.ConsumeString(b[4+n:])
	if n < 0 || m != len(b)-4-n {
		t.Fatalf("the answer is %x", b)
	}
	return number, value
}

func TestAnswers(t *testing.T) {
	data, err := proto.Marshal(&benchpb.AddRequest{A: 1, B: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		q     []byte
		field protowire.Number
		want  string // a part of the value
	}{
		{"failures", request(protobufPayload, "", "conformance.FailureSet", asProtobuf), protobufResult, ""},
		{"protobuf", request(protobufPayload, string(data), addRequest, asProtobuf), protobufResult, string(data)},
		{"to JSON", request(protobufPayload, string(data), addRequest, asJSON), jsonResult, `"b":`},
		{"to text", request(protobufPayload, string(data), addRequest, asText), textResult, "b:"},
		{"from JSON", request(jsonPayload, `{"a":1,"b":2}`, addRequest, asProtobuf), protobufResult, string(data)},
		{"from text", request(textPayload, "a:1 b:2", addRequest, asProtobuf), protobufResult, string(data)},
		{"invalid", request(protobufPayload, "\x08", addRequest, asProtobuf), parseError, "not a valid message"},
		{"invalid JSON", request(jsonPayload, `{"c":1}`, addRequest, asProtobuf), parseError, `"c"`},
		{"unknown message", request(protobufPayload, "", "no.Such", asProtobuf), runtimeError, "not found"},
		{"from JSPB", request(7, "", addRequest, asProtobuf), skipped, "input"},
		{"to JSPB", request(protobufPayload, "", addRequest, asJSPB), serializeError, "format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if field, got := ask(t, c.q); field != c.field || !strings.Contains(got, c.want) {
				t.Errorf("the answer is %d: %q", field, got)
			}
		})
	}
}

// With a category, fields of JSON that the message does not have are ignored.
func TestUnknownFieldsOfJSON(t *testing.T) {
	q := request(jsonPayload, `{"c":1}`, addRequest, asProtobuf)
	q = protowire.AppendVarint(protowire.AppendTag(q, 5, protowire.VarintType), 3)
	if field, got := ask(t, q); field != protobufResult || got != "" {
		t.Errorf("the answer is %d: %q", field, got)
	}
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	for _, in := range [][]byte{
		framed([]byte{0x0a, 9}), framed([]byte{0x80}), framed([]byte{0x18}), framed([]byte{0x1b}), {0, 0}, {9, 0, 0, 0}, {0, 0, 0, 0xff},
	} {
		var out bytes.Buffer
		if err := conformance.Serve(bytes.NewReader(in), &out, protobuf.New()); err == nil || out.Len() > 0 {
			t.Errorf("%x: %v, %x", in, err, out.Bytes())
		}
	}
}

func TestProgram(t *testing.T) {
	var out, log strings.Builder
	in := string(framed(request(protobufPayload, "\x08\x01", addRequest, asProtobuf)))
	for _, mode := range []string{"shared", "separate", "standard"} {
		out.Reset()
		if code := conformance.Main([]string{mode}, strings.NewReader(in), &out, &log); code != 0 || !strings.HasSuffix(out.String(), "\x08\x01") {
			t.Errorf("%s: %d, %q, %s", mode, code, out.String(), log.String())
		}
	}
	if code := conformance.Main(nil, strings.NewReader(in), &out, &log); code != 2 || !strings.Contains(log.String(), "messages, shared") {
		t.Errorf("without arguments: %d, %s", code, log.String())
	}
	// The messages of the suite are not linked here.
	if code := conformance.Main([]string{"messages"}, strings.NewReader(in), &out, &log); code != 1 || !strings.Contains(log.String(), "not linked") {
		t.Errorf("messages: %d, %s", code, log.String())
	}
}

func FuzzServe(f *testing.F) {
	f.Add(framed(request(protobufPayload, "\x08\x01", addRequest, asProtobuf)))
	f.Add(framed(request(jsonPayload, `{"a":1}`, addRequest, asText)))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) >= 4 { // a length that is there, or a little more
			binary.LittleEndian.PutUint32(in, uint32(len(in)-4+int(in[0]&1)))
		}
		var out bytes.Buffer
		err := conformance.Serve(bytes.NewReader(in), &out, protobuf.New())
		if answered := out.Len() > 0; answered == (err != nil) && len(in) > 0 {
			t.Errorf("%x: the answer is %x, %v", in, out.Bytes(), err)
		}
	})
}
