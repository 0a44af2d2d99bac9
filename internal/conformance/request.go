package conformance

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// The formats of conformance.proto.
const (
	protobufFormat = 1
	jsonFormat     = 2
	textFormat     = 4
)

// request is conformance.ConformanceRequest. It is read without generated code, which is under
// test.
type request struct {
	payload       []byte // owned by the request
	format        int    // of payload, or 0
	output        int    // format of the answer
	messageType   string
	ignoreUnknown bool // fields of JSON
	printUnknown  bool // fields in text
}

var errRequest = errors.New("the request is not a valid conformance.ConformanceRequest")

func parseRequest(b []byte) (request, error) {
	var q request
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return q, errRequest
		}
		b = b[n:]
		switch wire {
		case protowire.BytesType:
			var value []byte
			if value, n = protowire.ConsumeBytes(b); n >= 0 {
				q.setBytes(number, value)
			}
		case protowire.VarintType:
			var value uint64
			if value, n = protowire.ConsumeVarint(b); n >= 0 {
				q.setNumber(number, value)
			}
		default:
			n = protowire.ConsumeFieldValue(number, wire, b)
		}
		if n < 0 {
			return q, errRequest
		}
		b = b[n:]
	}
	return q, nil
}

func (q *request) setBytes(number protowire.Number, value []byte) {
	switch number {
	case 1:
		q.payload, q.format = value, protobufFormat
	case 2:
		q.payload, q.format = value, jsonFormat
	case 4:
		q.messageType = string(value)
	case 7: // JSPB, which only Google has
		q.payload, q.format = nil, 0
	case 8:
		q.payload, q.format = value, textFormat
	}
}

func (q *request) setNumber(number protowire.Number, value uint64) {
	const ignoreUnknownCategory = 3
	switch number {
	case 3:
		q.output = int(value)
	case 5:
		q.ignoreUnknown = value == ignoreUnknownCategory
	case 9:
		q.printUnknown = value != 0
	}
}

// response is conformance.ConformanceResponse: one field with its value.
type response struct {
	field result
	value []byte
}

type result = protowire.Number

const (
	parseError     result = 1
	runtimeError   result = 2
	protobufResult result = 3
	jsonResult     result = 4
	skipped        result = 5
	serializeError result = 6
	textResult     result = 8
)

func (r response) append(b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, r.field, protowire.BytesType), r.value)
}
