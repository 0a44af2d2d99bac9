package exchange

import (
	"strings"

	"github.com/anser-rpc/anser"
)

// The headers of calls that run once, in lower case.
const (
	KeyHeader      = "idempotency-key"
	RepeatedHeader = "anser-repeated"
)

// SetKey gives a call the key in the values of its headers Idempotency-Key and Anser-Repeated, if
// its method takes keys. The key of a method that does not is only metadata.
func SetKey(r *anser.ProtocolRequest, m *Method, keys, repeated []string) *anser.Error {
	if len(keys) == 0 || !m.Deduplicates {
		return nil
	}
	key, ok := parseKey(keys[0])
	if len(keys) > 1 || !ok {
		return anser.Refuse(anser.InvalidArgument, "the header Idempotency-Key is malformed: want one key of visible ASCII characters, with or without quotes")
	}
	r.IdempotencyKey = key
	switch {
	case len(repeated) == 0 || repeated[0] == "false":
	case repeated[0] == "true" && len(repeated) == 1:
		r.Repeated = true
	default:
		return anser.Refuse(anser.InvalidArgument, "the header Anser-Repeated is malformed: use true or false")
	}
	return nil
}

// RequireKey is SetKey for protocols in which a key is more than metadata: a method that neither
// takes keys nor may be repeated is refused. Better no call than one that runs twice against the
// caller's expectation.
func RequireKey(r *anser.ProtocolRequest, m *Method, keys, repeated []string) *anser.Error {
	if len(keys) > 0 && !m.Deduplicates && !m.Idempotent {
		return anser.Refuse(anser.Unimplemented, "method %q does not take idempotency keys: give it or the server anser.Deduplicate, or leave the header out", m.Name)
	}
	return SetKey(r, m, keys, repeated)
}

// parseKey returns a key, which may be a string of RFC 8941.
func parseKey(value string) (key string, ok bool) {
	value = strings.TrimSpace(value)
	if !strings.HasPrefix(value, `"`) {
		return value, value != ""
	}
	key, ok = strings.CutSuffix(value[1:], `"`)
	return key, ok && key != "" && !strings.ContainsAny(key, `"\`)
}
