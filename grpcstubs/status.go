package grpcstubs

import (
	"context"
	"errors"
	"io"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
)

// toStatus gives an error of Anser a status of gRPC. The codes of both have the same numbers.
func toStatus(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	e, ok := errors.AsType[*anser.Error](err)
	if !ok {
		if _, has := status.FromError(err); has {
			return err
		}
		return status.FromContextError(err).Err()
	}
	code, text := codes.Code(e.Code), e.Message
	if !e.Remote {
		text = e.Error()
	}
	s := status.New(code, text)
	if full := new(spb.Status); len(e.Details) > 0 && proto.Unmarshal(e.Details, full) == nil && full.Code == int32(code) && full.Message == e.Message {
		s = status.FromProto(full)
	}
	return &callError{s, e}
}

// callError is a status that wraps the error of Anser.
type callError struct {
	status *status.Status
	cause  *anser.Error
}

func (e *callError) Error() string { return e.status.Err().Error() }

// GRPCStatus is what status.FromError looks for.
func (e *callError) GRPCStatus() *status.Status { return e.status }

func (e *callError) Unwrap() error { return e.cause }

// fromStatus turns the error of a handler into one of Anser, as gRPC's server does: an error
// without a status has the code Unknown, or that of its context.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		if _, own := errors.AsType[*anser.Error](err); own {
			return err
		}
		s = status.New(codes.Unknown, err.Error())
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			s = status.FromContextError(err)
		}
	}
	out := anser.Errorf(anser.Code(s.Code()), "%s", s.Message())
	if len(s.Proto().GetDetails()) > 0 {
		if data, err := proto.Marshal(s.Proto()); err == nil {
			out = out.WithDetails(data)
		}
	}
	return out
}
