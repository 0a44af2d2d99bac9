package connectstubs

import (
	"context"
	"errors"
	"io"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
)

// toConnect returns an error of Anser as one of Connect, which wraps it. The codes of both have the
// same numbers.
func toConnect(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	e, ok := errors.AsType[*anser.Error](err)
	if !ok {
		if own, ok := errors.AsType[*connect.Error](err); ok && own != nil {
			return err
		}
		return connect.NewError(connect.Code(anser.CodeOf(err)), err.Error()).WithCause(err)
	}
	if !e.Remote {
		return connect.NewError(connect.Code(e.Code), e.Error()).WithCause(err)
	}
	out := connect.NewError(connect.Code(e.Code), e.Message).WithCause(err).WithRemote()
	for _, d := range details(e) {
		out = out.WithDetail(d)
	}
	return out
}

// details returns those of a status of gRPC, which stubs send as the details of an error.
func details(e *anser.Error) []*connect.ErrorDetail {
	full := new(spb.Status)
	if len(e.Details) == 0 || proto.Unmarshal(e.Details, full) != nil || full.Code != int32(e.Code) || full.Message != e.Message {
		return nil
	}
	var out []*connect.ErrorDetail
	for _, packed := range full.Details {
		if d, err := connectproto.NewErrorDetail(packed); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// fromConnect returns what a client gets for the error of a handler, by Connect's rules: only
// errors that the handler wrote have their text and details. Of others the client sees the code of
// a context that ended, and otherwise Unknown, or Internal for the error of a call that the handler
// made.
func fromConnect(err error) error {
	if err == nil {
		return nil
	}
	inner, isOurs := errors.AsType[*anser.Error](err)
	v := &verdict{cause: err, code: anser.Unknown}
	switch own, ok := errors.AsType[*connect.Error](err); {
	case ok && own != nil && !own.IsRemote():
		v.code, v.text = anser.Code(own.Code()), strings.ToValidUTF8(own.Message(), "�")
		v.details = packed(v, own.Details())
	case ok && own != nil:
		v.code = anser.Internal
	case isOurs && inner.Method == "":
		return err
	case isOurs:
		v.code = anser.Internal
	case errors.Is(err, context.Canceled):
		v.code = anser.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		v.code = anser.DeadlineExceeded
	}
	v.as = &anser.Error{Outcome: anser.Executed}
	if isOurs {
		// Anser must see the call that failed: retries of this one only make it worse if those of
		// that one have failed already.
		inherited := *inner
		v.as = &inherited
	}
	v.as.Code, v.as.Message, v.as.Details = v.code, v.text, v.details
	return v
}

// packed returns the details as those of a status of gRPC, or nil without details.
func packed(v *verdict, list []*connect.ErrorDetail) []byte {
	if len(list) == 0 {
		return nil
	}
	full := &spb.Status{Code: int32(v.code), Message: v.text}
	for _, d := range list {
		full.Details = append(full.Details, connectproto.ErrorDetailToAny(d))
	}
	b, err := proto.Marshal(full)
	if err != nil {
		return nil //nits:ignore nilerr an error without its details still has its code
	}
	return b
}

// verdict is the error of a handler as its client gets it.
type verdict struct {
	code    anser.Code
	text    string
	details []byte
	as      *anser.Error // what Anser sends
	cause   error        // for interceptors and observers of the server
}

// Error returns the text that the client gets.
func (v *verdict) Error() string { return v.text }

// Unwrap returns the error that Anser sends, and the one of the handler.
func (v *verdict) Unwrap() []error { return []error{v.as, v.cause} }
