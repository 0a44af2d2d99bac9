package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

func TestAuthRoundTrip(t *testing.T) {
	for _, scheme := range []string{"x", "token", "a-z_0.9", strings.Repeat("s", wire.MaxAuthScheme)} {
		for _, credential := range []string{"", "secret", strings.Repeat("c", wire.MaxCredential)} {
			b := wire.AppendAuth([]byte("kept"), scheme, []byte(credential))
			gotScheme, got, err := wire.ParseAuth(body(t, b[4:], wire.TypeAuth, 0, 0))
			if err != nil || gotScheme != scheme || string(got) != credential {
				t.Fatalf("parsed %q and %d bytes, %v; want %q and %d", gotScheme, len(got), err, scheme, len(credential))
			}
		}
	}
}

// Malformed input is rejected, and no error contains a part of it.
func TestAuthMalformed(t *testing.T) {
	secret := []byte("open-sesame-42")
	whole := wire.AppendAuth(nil, "token", secret)[wire.HeaderSize:]
	for name, body := range map[string][]byte{
		"empty":           nil,
		"no scheme":       append([]byte{0}, secret...),
		"scheme cut":      whole[:5],
		"scheme too long": append([]byte{33}, bytes.Repeat([]byte("s"), 64)...),
		"upper case":      append([]byte{14}, "OPEN-SESAME-42"...),
		"space":           append([]byte{3}, "a b"...),
		"not ASCII":       append([]byte{2}, "é"...),
		"too long":        append([]byte{1, 'x'}, make([]byte, wire.MaxCredential+1)...),
	} {
		_, _, err := wire.ParseAuth(body)
		wantReason(t, err, wire.BadFrame)
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "sesame") {
			t.Errorf("%s: the error says what was sent: %v", name, err)
		}
	}
	var fault *wire.Error
	if err := wire.CheckAuth("Token", 0); !errors.As(err, &fault) {
		t.Error(err)
	}
}

func FuzzAuth(f *testing.F) {
	seedFrames(f, func(frame []byte) {
		if h, err := wire.ParseHeader(frame); err == nil && h.Type == wire.TypeAuth {
			f.Add(frame[wire.HeaderSize:])
		}
	})
	f.Add([]byte{0})
	f.Add([]byte{255, 'x'})
	f.Fuzz(func(t *testing.T, body []byte) {
		scheme, credential, err := wire.ParseAuth(body)
		if err != nil {
			wantReason(t, err, wire.BadFrame)
			return
		}
		if again := wire.AppendAuth(nil, scheme, credential)[wire.HeaderSize:]; !bytes.Equal(again, body) {
			t.Fatalf("% X is read as %q and % X", body, scheme, credential)
		}
	})
}
