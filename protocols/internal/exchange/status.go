package exchange

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http2/hpack"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
)

// Fault returns err as an error of Anser.
func Fault(err error) *anser.Error {
	if e, ok := errors.AsType[*anser.Error](err); ok {
		return e
	}
	return anser.Errorf(anser.CodeOf(err), "%v", err)
}

// Status returns the google.rpc.Status of an error, with the details if they are one: generated
// code of gRPC that runs over Anser attaches them so.
func Status(e *anser.Error) *spb.Status {
	if len(e.Details) > 0 {
		full := new(spb.Status)
		if proto.Unmarshal(e.Details, full) == nil && full.Code == int32(e.Code) && full.Message == e.Message {
			return full
		}
	}
	return &spb.Status{Code: int32(e.Code), Message: strings.ToValidUTF8(e.Message, "�")}
}

// PercentEncode returns a message in the form of grpc-message.
func PercentEncode(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// StatusFields returns the gRPC trailers for an error.
func StatusFields(e *anser.Error) []hpack.HeaderField {
	fields := []hpack.HeaderField{{Name: "grpc-status", Value: strconv.Itoa(int(e.Code))}}
	if e.Message != "" {
		fields = append(fields, hpack.HeaderField{Name: "grpc-message", Value: PercentEncode(e.Message)})
	}
	if s := Status(e); len(s.Details) > 0 {
		if data, err := proto.Marshal(s); err == nil {
			fields = append(fields, hpack.HeaderField{Name: "grpc-status-details-bin", Value: base64.RawStdEncoding.EncodeToString(data)})
		}
	}
	if e.RetryAfter > 0 {
		fields = append(fields, hpack.HeaderField{Name: "grpc-retry-pushback-ms", Value: strconv.FormatInt(e.RetryAfter.Milliseconds(), 10)})
	} else if e.RetryAfter < 0 {
		fields = append(fields, hpack.HeaderField{Name: "grpc-retry-pushback-ms", Value: "-1"})
	}
	return append(fields, hpack.HeaderField{Name: outcomeKey, Value: e.Outcome.String()})
}

// outcomeKey is the trailer or header that says whether a call that failed may have run.
const outcomeKey = "anser-outcome"

// RetryFields returns the headers for an error besides its code and message: whether it may have
// run, and when to try again.
func RetryFields(e *anser.Error) []hpack.HeaderField {
	fields := []hpack.HeaderField{{Name: outcomeKey, Value: e.Outcome.String()}}
	if e.RetryAfter > 0 {
		fields = append(fields, hpack.HeaderField{Name: "retry-after", Value: strconv.Itoa(int((e.RetryAfter + time.Second - 1) / time.Second))})
	}
	return fields
}
