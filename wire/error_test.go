package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
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

func TestErrorTexts(t *testing.T) {
	if got, want := wire.Errorf(wire.BadID, "id %d again", 7).Error(), "id 7 again (BAD_ID)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&wire.CallError{Code: wire.NotFound, Text: "no such thing"}).Error(), "no such thing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func fullError() wire.ErrorBody {
	return wire.ErrorBody{
		Code: wire.Unavailable, Outcome: wire.Refused, RetryAfter: wire.RetryNever,
		Message: "going away, größe", Metadata: someMetadata, Details: []byte("details"),
	}
}

func TestErrorRoundTrip(t *testing.T) {
	full := fullError()
	for _, c := range []struct {
		name  string
		flags wire.Flags
		want  wire.ErrorBody
	}{
		{"least", 0, wire.ErrorBody{Code: wire.Canceled, Outcome: wire.Executed, Details: []byte{}}},
		{"everything", wire.FlagMetadata | wire.FlagIdempotent, full},
		{"message and details", wire.FlagIdempotent, wire.ErrorBody{
			Code: wire.UnauthenticatedCall, Outcome: wire.OutcomeUnknown, RetryAfter: 1500, Message: "m", Details: full.Details,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendError([]byte("kept"), 5, c.flags&^wire.FlagMetadata, &c.want)
			got, err := wire.ParseError(c.flags, body(t, b[4:], wire.TypeError, c.flags, 5))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("parsed %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestErrorTruncated(t *testing.T) {
	e := fullError()
	whole := body(t, wire.AppendError(nil, 1, 0, &e), wire.TypeError, wire.FlagMetadata, 1)
	messageEnd := wire.ErrorSize + len(e.Message)
	metadataEnd := messageEnd + len(someMetadata)
	for n := range len(whole) {
		got, err := wire.ParseError(wire.FlagMetadata, whole[:n])
		switch {
		case n < messageEnd:
			wantReason(t, err, wire.BadFrame)
		case n < metadataEnd:
			wantReason(t, err, wire.BadMetadata)
		case err != nil || string(got.Details) != "details"[:n-metadataEnd]:
			t.Fatalf("cut at %d: details %q, %v", n, got.Details, err)
		}
	}
}

func TestErrorMalformed(t *testing.T) {
	message := func(declared uint32, sent int) []byte {
		b := append(make([]byte, 8), 0, 0, 0, 0)
		binary.LittleEndian.PutUint32(b[8:], declared)
		return append(b, bytes.Repeat([]byte("m"), sent)...)
	}
	reserved := func(at int) []byte {
		b := message(0, 0)
		b[at] = 1
		return b
	}
	for _, c := range []struct {
		name string
		body []byte
		ok   bool
	}{
		{"reserved 2", reserved(2), false},
		{"reserved 3", reserved(3), false},
		{"message one beyond the frame", message(4, 3), false},
		{"message wraps 32 bits", message(0xFFFFFFF4, 3), false},
		{"message of 4 GiB", message(0xFFFFFFFF, 3), false},
		{"message limit-1", message(1<<16-1, 1<<16-1), true},
		{"message limit", message(1<<16, 1<<16), true},
		{"message limit+1", message(1<<16+1, 1<<16+1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := wire.ParseError(0, c.body)
			if !c.ok {
				wantReason(t, err, wire.BadFrame)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Unknown codes and outcomes of a newer peer get the most cautious interpretation.
func TestErrorUnknownNumbers(t *testing.T) {
	for n := range 256 {
		wantCode, wantOutcome := wire.Code(n), wire.Outcome(n)
		if n == 0 || n > 16 {
			wantCode = wire.Unknown
		}
		if n == 0 || n > 3 {
			wantOutcome = wire.OutcomeUnknown
		}
		b := wire.AppendError(nil, 1, 0, &wire.ErrorBody{Code: wire.Code(n), Outcome: wire.Outcome(n)})
		e, err := wire.ParseError(0, b[wire.HeaderSize:])
		if err != nil || e.Code != wantCode || e.Outcome != wantOutcome {
			t.Fatalf("%d is read as %s and %s, %v", n, e.Code, e.Outcome, err)
		}
	}
}

func TestCloseRoundTrip(t *testing.T) {
	for _, text := range []string{"", "shutting down", strings.Repeat("t", 1023), strings.Repeat("t", 1024)} {
		b := wire.AppendClose([]byte("kept"), wire.Overload, text)
		reason, got, err := wire.ParseClose(body(t, b[4:], wire.TypeClose, 0, 0))
		if err != nil || reason != wire.Overload || got != text {
			t.Fatalf("parsed %s %q, %v; want %q", reason, got, err, text)
		}
	}
}

func TestCloseMalformed(t *testing.T) {
	for n := range 4 {
		_, _, err := wire.ParseClose(make([]byte, n))
		wantReason(t, err, wire.BadFrame)
	}
	_, _, err := wire.ParseClose(make([]byte, 4+1025))
	wantReason(t, err, wire.BadFrame)
}

// Sent texts are valid UTF-8 within their limit, whatever the text was.
func TestSentTexts(t *testing.T) {
	for _, limit := range []int{wire.MaxCloseText, wire.MaxMessage} {
		a := strings.Repeat("a", limit-2)
		for _, c := range []struct{ name, text, want string }{
			{"limit-1", a + "b", a + "b"},
			{"limit", a + "bc", a + "bc"},
			{"limit+1", a + "bcd", a + "bc"},
			{"two bytes end at the limit", a + "é", a + "é"},
			{"two bytes cross the limit", a + "bé", a + "b"},
			{"three bytes cross the limit", a + "€", a},
			{"four bytes cross the limit", a + "😀", a},
			{"broken bytes", "a\xFF\xFEb\xC3", "a\uFFFDb\uFFFD"},
			{"broken bytes at the limit", a + "\xFF", a},
		} {
			t.Run(fmt.Sprint(limit, " ", c.name), func(t *testing.T) {
				var got string
				if limit == wire.MaxCloseText {
					b := wire.AppendClose(nil, 0, c.text)
					got = string(body(t, b, wire.TypeClose, 0, 0)[4:])
				} else {
					b := wire.AppendError(nil, 1, 0, &wire.ErrorBody{Message: c.text})
					got = string(body(t, b, wire.TypeError, 0, 1)[wire.ErrorSize:])
				}
				if got != c.want {
					t.Fatalf("sent %d bytes ending in %q, want %d", len(got), got[max(0, len(got)-8):], len(c.want))
				}
			})
		}
	}
}

// Texts of a peer may be shown in logs and on terminals: they are always UTF-8.
func TestReceivedTexts(t *testing.T) {
	const broken, want = "a\xFF\xFEb\xED\xA0\x80", "a\uFFFDb\uFFFD"
	_, text, err := wire.ParseClose(append(make([]byte, 4), broken...))
	if err != nil || text != want {
		t.Errorf("CLOSE text is %q, %v; want %q", text, err, want)
	}
	b := wire.AppendError(nil, 1, 0, &wire.ErrorBody{Message: strings.Repeat("x", len(broken))})[wire.HeaderSize:]
	copy(b[wire.ErrorSize:], broken)
	e, err := wire.ParseError(0, b)
	if err != nil || e.Message != want {
		t.Errorf("ERROR message is %q, %v; want %q", e.Message, err, want)
	}
}
