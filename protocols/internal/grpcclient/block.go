package grpcclient

import (
	"encoding/base64"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/wire"
)

// block is a header or trailers of the server.
type block struct {
	id    uint32 // of the stream; 0: none is being read
	end   bool
	parts int
	size  uint32

	status, contentType, encoding            string
	code, message, details, outcome, retryIn string
	more                                     map[string][]string
}

// emit takes a field of the block.
func (b *block) emit(f hpack.HeaderField) {
	if b.size += f.Size(); b.size > maxHeader {
		return
	}
	switch f.Name {
	case ":status":
		b.status = f.Value
	case "content-type":
		b.contentType = f.Value
	case "grpc-encoding":
		b.encoding = f.Value
	case "grpc-status":
		b.code = f.Value
	case "grpc-message":
		b.message = f.Value
	case "grpc-status-details-bin":
		b.details = f.Value
	case "grpc-retry-pushback-ms":
		b.retryIn = f.Value
	case "anser-outcome":
		b.outcome = f.Value
	default:
		if b.more == nil {
			b.more = make(map[string][]string)
		}
		exchange.AddResponse(b.more, f.Name, f.Value)
	}
}

func decodeBinary(s string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
}

func isGRPC(contentType string) bool { return strings.HasPrefix(contentType, "application/grpc") }

// notGRPC returns the error of an answer that is not one of gRPC.
func notGRPC(b *block) *wire.ErrorBody {
	status, _ := strconv.Atoi(b.status)
	return exchange.HTTPFailure(status, b.contentType)
}

// statusOf returns the status of a call. alone says that the answer has no other part.
func statusOf(b *block, alone bool) *wire.ErrorBody {
	a := exchange.ParseStatus(b.code, b.message)
	if a == nil {
		return exchange.Unexpected("the server has sent no status")
	}
	if b.details != "" {
		if raw, err := decodeBinary(b.details); err == nil {
			a.Details = raw
		}
	}
	a.RetryIn, a.Outcome, a.Alone = b.retryIn, b.outcome, alone
	if fault := a.Fault(); fault != nil {
		return fault
	}
	return new(wire.ErrorBody)
}
