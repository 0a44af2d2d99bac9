package wire

// Sizes of an AUTH frame, in bytes.
const (
	MaxAuthScheme = 32
	MaxCredential = 16 << 10
)

// FeatureAuth is the bit of Settings.Features by which a client announces that its next frame is
// AUTH.
const FeatureAuth = 1 << 1

// AppendAuth appends an AUTH frame with a credential of the scheme. The caller must have checked
// both: see [CheckAuth].
func AppendAuth(dst []byte, scheme string, credential []byte) []byte {
	dst = AppendHeader(dst, Header{Length: uint32(1 + len(scheme) + len(credential)), Type: TypeAuth})
	dst = append(dst, byte(len(scheme)))
	dst = append(dst, scheme...)
	return append(dst, credential...)
}

// ParseAuth parses the body of an AUTH frame. The credential aliases body. No error contains the
// credential.
func ParseAuth(body []byte) (scheme string, credential []byte, err error) {
	if len(body) == 0 || int(body[0]) >= len(body) {
		return "", nil, Errorf(BadFrame, "AUTH frame of %d bytes is shorter than its scheme", len(body))
	}
	n := 1 + int(body[0])
	scheme, credential = string(body[1:n]), body[n:]
	if err := CheckAuth(scheme, len(credential)); err != nil {
		return "", nil, err
	}
	return scheme, credential, nil
}

// CheckAuth returns an [*Error] if AUTH cannot carry a credential of that scheme with credential
// bytes.
func CheckAuth(scheme string, credential int) error {
	if len(scheme) == 0 || len(scheme) > MaxAuthScheme {
		return Errorf(BadFrame, "AUTH with a scheme of %d bytes, want 1 to %d", len(scheme), MaxAuthScheme)
	}
	for i := range len(scheme) {
		if c := scheme[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return Errorf(BadFrame, "AUTH with a scheme that has the byte %02X, want a-z 0-9 - _ .", c)
		}
	}
	if credential > MaxCredential {
		return Errorf(BadFrame, "AUTH with a credential of %d bytes, want at most %d", credential, MaxCredential)
	}
	return nil
}
