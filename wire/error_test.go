package wire_test

import (
	"testing"

	"github.com/anser-rpc/anser/wire"
)

func TestNames(t *testing.T) {
	for r, want := range map[wire.Reason]string{
		wire.Normal: "NORMAL", wire.BadFrame: "BAD_FRAME", wire.BadVersion: "BAD_VERSION",
		wire.FrameTooLarge: "FRAME_TOO_LARGE", wire.BadID: "BAD_ID", wire.BadMethod: "BAD_METHOD",
		wire.BadMetadata: "BAD_METADATA", wire.Flood: "FLOOD", wire.Timeout: "TIMEOUT",
		wire.FlowControl: "FLOW_CONTROL", wire.Overload: "OVERLOAD",
		wire.Unauthenticated: "UNAUTHENTICATED", wire.BadChecksum: "BAD_CHECKSUM",
		wire.Internal: "INTERNAL", 14: "reason 14", 1<<32 - 1: "reason 4294967295",
	} {
		if got := r.String(); got != want {
			t.Errorf("Reason(%d).String() = %q, want %q", uint32(r), got, want)
		}
	}
	for c, want := range map[wire.Code]string{
		wire.OK: "OK", wire.Canceled: "CANCELLED", wire.Unknown: "UNKNOWN",
		wire.InvalidArgument: "INVALID_ARGUMENT", wire.DeadlineExceeded: "DEADLINE_EXCEEDED",
		wire.NotFound: "NOT_FOUND", wire.AlreadyExists: "ALREADY_EXISTS",
		wire.PermissionDenied: "PERMISSION_DENIED", wire.ResourceExhausted: "RESOURCE_EXHAUSTED",
		wire.FailedPrecondition: "FAILED_PRECONDITION", wire.Aborted: "ABORTED",
		wire.OutOfRange: "OUT_OF_RANGE", wire.Unimplemented: "UNIMPLEMENTED",
		wire.InternalError: "INTERNAL", wire.Unavailable: "UNAVAILABLE", wire.DataLoss: "DATA_LOSS",
		wire.UnauthenticatedCall: "UNAUTHENTICATED", 17: "code 17", 255: "code 255",
	} {
		if got := c.String(); got != want {
			t.Errorf("Code(%d).String() = %q, want %q", uint8(c), got, want)
		}
	}
	for o, want := range map[wire.Outcome]string{
		wire.NotSent: "NotSent", wire.Refused: "Refused", wire.OutcomeUnknown: "Unknown",
		wire.Executed: "Executed", 4: "outcome 4",
	} {
		if got := o.String(); got != want {
			t.Errorf("Outcome(%d).String() = %q, want %q", uint8(o), got, want)
		}
	}
}
