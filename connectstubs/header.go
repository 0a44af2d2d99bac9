package connectstubs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/anser-rpc/anser/internal/stubwire"
)

const binarySuffix = "-bin"

// toWire returns the headers as stubs send them: keys in lower case, and raw bytes where Connect
// has base64. The keys that stubs use themselves are left out, as every transport of Connect does.
func toWire(h *connect.Header) (map[string][]string, error) {
	out := make(map[string][]string, h.Len())
	for key, values := range h.All() {
		key = strings.ToLower(key)
		switch {
		case stubwire.IsReserved(key) || len(values) == 0:
		case strings.HasSuffix(key, binarySuffix):
			raw, err := decoded(key, values)
			if err != nil {
				return nil, err
			}
			out[key] = raw
		default:
			out[key] = values
		}
	}
	return out, nil
}

// decoded returns binary values, of which several may be joined with a comma.
func decoded(key string, values []string) ([]string, error) {
	var out []string
	for _, joined := range values {
		for value := range strings.SplitSeq(joined, ",") {
			raw, err := connect.DecodeBinaryHeader(strings.TrimSpace(value))
			if err != nil {
				return nil, fmt.Errorf("connectstubs: the value of the header %s is not base64: encode it with connect.EncodeBinaryHeader: %w", key, err)
			}
			out = append(out, string(raw))
		}
	}
	return out, nil
}

// fromWire sets headers that stubs sent. The keys of h that md does not have remain.
func fromWire(h *connect.Header, md map[string][]string) {
	for _, key := range slices.Sorted(maps.Keys(md)) {
		values := md[key]
		if strings.HasSuffix(key, binarySuffix) {
			values = slices.Clone(values)
			for i, raw := range values {
				values[i] = connect.EncodeBinaryHeader([]byte(raw))
			}
		}
		h.SetValues(key, values)
	}
}
