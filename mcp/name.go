package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the length of the names of tools: clients allow 64 characters, and put the name of the
// server in front.
const maxName = 40

// hashed is the number of characters of the hash of a name that was shortened.
const hashed = 8

// toolName returns the name of the tool of a method: "orders_v1_Orders_Get" of
// "orders.v1.Orders.Get". It depends on nothing but the method's name. A name that is too long, or
// that another method could have in this form, ends with a hash of the whole name; it begins with
// as many of the last parts of the name as there is room for.
func toolName(full string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, full)
	if len(clean) <= maxName && !strings.ContainsFunc(full, ambiguous) {
		return clean
	}
	const room = maxName - hashed - 1
	for len(clean) > room {
		_, rest, ok := strings.Cut(clean, "_")
		if !ok || rest == "" {
			clean = clean[:room]
			break
		}
		clean = rest
	}
	sum := sha256.Sum256([]byte(full))
	return clean + "_" + hex.EncodeToString(sum[:])[:hashed]
}

// ambiguous reports whether a character does not show in the name of the tool as it is. The slash
// between a service and its methods, of which there is one, and dots are parts.
func ambiguous(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '/')
}
