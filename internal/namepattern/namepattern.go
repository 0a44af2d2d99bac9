// Package namepattern decides by lists of patterns which methods are tools for agents.
package namepattern

import (
	"fmt"
	"strings"
)

// Check returns what is wrong with a pattern, or nil.
func Check(p string) error {
	if strings.TrimPrefix(p, "!") == "" || strings.ContainsAny(p, " ,") {
		return fmt.Errorf("the pattern %q names no method: use a name such as Orders.Get, or a pattern such as Orders.*", p)
	}
	return nil
}

// Allows reports whether a pattern allows the name: * takes the place of any characters. A pattern
// that begins with ! takes names away, wherever it is in the list.
func Allows(patterns []string, name string) bool {
	allowed := false
	for _, p := range patterns {
		if no, ok := strings.CutPrefix(p, "!"); ok {
			if fits(no, name) {
				return false
			}
			continue
		}
		allowed = allowed || fits(p, name)
	}
	return allowed
}

// fits reports whether a name fits a pattern with stars.
func fits(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
