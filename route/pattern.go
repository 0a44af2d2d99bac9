package route

import (
	"encoding/json"
	"strings"
)

// Patterns are texts of which one has to match: as it is, or with * for any run of characters. One that
// begins with ! must not match. In JSON a single pattern may stand for a list of one. No pattern
// matches all.
type Patterns []string

// UnmarshalJSON takes a text or a list of texts.
func (p *Patterns) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil && string(data) != "null" {
		*p = Patterns{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(p))
}

// MarshalJSON writes a single pattern as a text.
func (p Patterns) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		return json.Marshal(p[0])
	}
	return json.Marshal([]string(p))
}

// match reports whether the text is meant. It does not allocate.
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

// glob reports whether the pattern with stars matches the whole text. It goes back to the last star only, so
// that its time is bounded by the product of the lengths.
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

// resolved replaces the words that mean the caller's value.
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
