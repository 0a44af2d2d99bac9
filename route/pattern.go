package route

import (
	"encoding/json"
	"strings"
)

// Patterns is a list of which one pattern must match: exactly, or with * for any sequence of
// characters. A pattern that begins with ! must not match. In JSON a single pattern may be written
// without a list. An empty list matches everything.
type Patterns []string

// UnmarshalJSON accepts a string or a list of strings.
func (p *Patterns) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil && string(data) != "null" {
		*p = Patterns{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(p))
}

// MarshalJSON encodes a single pattern as a string.
func (p Patterns) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		return json.Marshal(p[0])
	}
	return json.Marshal([]string(p))
}

// match reports whether the text matches. It does not allocate.
func (p Patterns) match(text string) bool {
	found, wanted := false, false
	for _, pattern := range p {
		if no, ok := strings.CutPrefix(pattern, "!"); ok {
			if glob(no, text) {
				return false
			}
			continue
		}
		wanted = true
		found = found || glob(pattern, text)
	}
	return found || !wanted
}

// glob reports whether a pattern with stars matches the whole text. It backtracks to the last star
// only, so its time is bounded by the product of the lengths.
func glob(pattern, text string) bool {
	i, j, star, from := 0, 0, -1, 0
	for j < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
		case i < len(pattern) && pattern[i] == text[j]:
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// resolved replaces the placeholders of the caller's values.
func (p Patterns) resolved(c *Caller) Patterns {
	var out Patterns
	for i, pattern := range p {
		var value string
		switch pattern {
		case "$group":
			value = c.Group
		case "$version":
			value = c.Version
		case "$zone":
			value = c.Zone
		default:
			continue
		}
		if out == nil {
			out = append(out, p...)
		}
		out[i] = value
	}
	if out == nil {
		return p
	}
	return out
}
