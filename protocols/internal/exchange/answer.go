package exchange

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
	"github.com/anser-rpc/anser/wire"
)

// Answer is the status that a server of another protocol gives to a call, in the words of gRPC.
type Answer struct {
	Code    wire.Code
	Message string
	Details []byte // an encoded google.rpc.Status
	RetryIn string // milliseconds, as grpc-retry-pushback-ms has them
	Outcome string // value of anser-outcome
	Alone   bool   // the answer has no other part
}

// Fault returns the error of the call, or nil if it has succeeded.
func (a *Answer) Fault() *wire.ErrorBody {
	if a.Code == wire.OK {
		return nil
	}
	e := &wire.ErrorBody{Code: a.Code, Message: strings.ToValidUTF8(a.Message, "�"), Details: a.Details}
	if a.Code > wire.UnauthenticatedCall {
		e.Code = wire.Unknown
	}
	if ms, err := strconv.ParseInt(a.RetryIn, 10, 64); err == nil {
		switch {
		case ms < 0:
			e.RetryAfter = wire.RetryNever
		default:
			e.RetryAfter = uint32(min(max(ms, 1), wire.RetryNever-1))
		}
	} else if a.RetryIn != "" {
		e.RetryAfter = wire.RetryNever // as gRPC demands of values that are malformed
	}
	switch {
	case a.Outcome == anser.Refused.String():
		e.Outcome = wire.Refused
	case a.Outcome == anser.Executed.String():
		e.Outcome = wire.Executed
	case a.Outcome != "":
		e.Outcome = wire.OutcomeUnknown
	case a.Alone && e.Code == wire.Unimplemented:
		e.Outcome = wire.Refused
	case e.Code == wire.Unavailable || e.Code == wire.Canceled || e.Code == wire.DeadlineExceeded || e.Code == wire.Unknown || e.Code == wire.InternalError:
		e.Outcome = wire.OutcomeUnknown // proxies answer with them too
	default:
		e.Outcome = wire.Executed
	}
	return e
}

// ParseStatus returns the answer with the values of grpc-status and grpc-message, or nil if there
// is none.
func ParseStatus(code, message string) *Answer {
	n, err := strconv.ParseUint(code, 10, 32)
	if err != nil {
		return nil
	}
	a := &Answer{Code: wire.Code(min(n, 255)), Message: message}
	if strings.Contains(message, "%") {
		if text, err := url.PathUnescape(message); err == nil {
			a.Message = text
		}
	}
	return a
}

// TakeStatus removes the fields of a status from headers or trailers, and returns it, or nil if
// there is none.
func TakeStatus(h http.Header) *Answer {
	take := func(name string) string {
		value := h.Get(name)
		h.Del(name)
		return value
	}
	a := ParseStatus(take("grpc-status"), take("grpc-message"))
	details, retry, outcome := take("grpc-status-details-bin"), take("grpc-retry-pushback-ms"), take(outcomeKey)
	if a != nil {
		a.Details, _ = decodeBinary(strings.TrimRight(details, "="))
		a.RetryIn, a.Outcome = retry, outcome
	}
	return a
}

// HTTPFailure returns the error of an answer that no server of the protocol gives, such as one of a
// proxy.
func HTTPFailure(status int, contentType string) *wire.ErrorBody {
	e := &wire.ErrorBody{Code: wire.Unknown, Outcome: wire.OutcomeUnknown}
	switch status {
	case 400:
		e.Code = wire.InternalError
	case 401:
		e.Code = wire.UnauthenticatedCall
	case 403:
		e.Code = wire.PermissionDenied
	case 404:
		e.Code = wire.Unimplemented
	case 429, 502, 503, 504:
		e.Code = wire.Unavailable
	}
	e.Message = fmt.Sprintf("the answer is not one of the protocol: HTTP status %d, content type %q", status, contentType)
	return e
}

// Unexpected returns the error of an answer that breaks the protocol.
func Unexpected(text string) *wire.ErrorBody {
	return &wire.ErrorBody{Code: wire.InternalError, Outcome: wire.OutcomeUnknown, Message: text}
}

// Cardinality returns the error of another number of messages than one.
func Cardinality(text string) *wire.ErrorBody {
	return &wire.ErrorBody{Code: wire.Unimplemented, Outcome: wire.Executed, Message: text}
}

// ReplyTooLarge returns the error of a message of a server over the client's limit.
func ReplyTooLarge(size int64) *wire.ErrorBody {
	e := &wire.ErrorBody{Code: wire.ResourceExhausted, Outcome: wire.Executed}
	e.Message = "a message of " + strconv.FormatInt(size, 10) + " bytes from the server is over this client's limit: raise it with anser.MaxMessage on the client"
	return e
}

// ResponseMetadata returns the headers or trailers of an answer without those of the protocols,
// with keys in lower case and the values of keys in "-bin" decoded.
func ResponseMetadata(h map[string][]string) map[string][]string {
	md := make(map[string][]string)
	for name, values := range h {
		for _, v := range values {
			AddResponse(md, strings.ToLower(name), v)
		}
	}
	return md
}

// AddResponse adds a field of an answer to its metadata, with the name in lower case.
func AddResponse(md map[string][]string, name, value string) {
	switch name {
	case "date", "server", "content-type", "transfer-encoding", "vary", "accept-post":
		return
	}
	if Reserved(name) {
		return
	}
	if !strings.HasSuffix(name, "-bin") {
		md[name] = append(md[name], value)
		return
	}
	for part := range strings.SplitSeq(value, ",") {
		if raw, err := decodeBinary(strings.TrimSpace(part)); err == nil {
			md[name] = append(md[name], string(raw))
		}
	}
}

// AppendMetadata returns metadata as a block, or nothing if it is empty or too large.
func AppendMetadata(md map[string][]string, most uint64) []byte {
	var pairs []wire.Pair
	for k, v := range stubwire.Pack(md) {
		if p := (wire.Pair{Key: k, Value: v}); wire.CheckPair(p) == nil {
			pairs = append(pairs, p)
		}
	}
	if len(pairs) == 0 || len(pairs) > wire.MaxPairs {
		return nil
	}
	b := wire.AppendMetadata(nil, pairs)
	if uint64(len(b)) > most {
		return nil
	}
	return b
}
