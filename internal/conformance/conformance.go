// Package conformance answers the runner of protobuf's conformance suite with Anser's codec.
// scripts/suites/conformance links it with the messages of the suite, for which it generates the
// code, so they are not imported here: they are found by their names.
package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// maxRequest limits a request in bytes. Those of the suite have up to a few hundred KiB.
const maxRequest = 64 << 20

// Codec is what is tested.
type Codec interface {
	Append(dst []byte, v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// standard is the standard library.
type standard struct{}

func (standard) Append(dst []byte, v any) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, v.(proto.Message))
}

func (standard) Unmarshal(data []byte, v any) error {
	return proto.Unmarshal(data, v.(proto.Message))
}

// Serve reads requests from r, each behind its length in four bytes, and writes an answer for each
// to w, until r ends. Messages are decoded and encoded in binary by c, in other formats by the
// standard library.
func Serve(r io.Reader, w io.Writer, c Codec) error {
	var length [4]byte
	for {
		if _, err := io.ReadFull(r, length[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		n := binary.LittleEndian.Uint32(length[:])
		if n > maxRequest {
			return fmt.Errorf("a request of %d bytes, more than %d", n, maxRequest)
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		q, err := parseRequest(data)
		if err != nil {
			return err
		}
		a := answer(q, c).append(make([]byte, 4))
		binary.LittleEndian.PutUint32(a, uint32(len(a)-4))
		if _, err := w.Write(a); err != nil {
			return err
		}
	}
}

var errNoFormat = errors.New("unknown format of output")

func answer(q request, c Codec) response {
	if q.messageType == "conformance.FailureSet" { // the first request; the list of failures is empty
		return response{field: protobufResult}
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(q.messageType))
	if err != nil {
		return response{runtimeError, []byte(err.Error())}
	}
	m := t.New().Interface()
	switch q.format {
	case protobufFormat:
		err = c.Unmarshal(q.payload, m)
	case jsonFormat:
		err = protojson.UnmarshalOptions{DiscardUnknown: q.ignoreUnknown}.Unmarshal(q.payload, m)
	case textFormat:
		err = prototext.Unmarshal(q.payload, m)
	default:
		return response{skipped, []byte("the format of input is not supported")}
	}
	if err != nil {
		return response{parseError, []byte(err.Error())}
	}
	for i := range q.payload { // nothing in the message may refer to it
		q.payload[i] = 0xff
	}
	return encode(q, m, c)
}

func encode(q request, m proto.Message, c Codec) response {
	var (
		out []byte
		err = errNoFormat
		a   = response{field: skipped}
	)
	switch q.output {
	case protobufFormat:
		a.field = protobufResult
		out, err = c.Append(nil, m)
	case jsonFormat:
		a.field = jsonResult
		out, err = protojson.Marshal(m)
	case textFormat:
		a.field = textResult
		out, err = prototext.MarshalOptions{EmitUnknown: q.printUnknown}.Marshal(m)
	}
	if err != nil {
		return response{serializeError, []byte(err.Error())}
	}
	a.value = out
	return a
}
