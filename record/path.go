package record

import (
	"slices"
	"strconv"
	"strings"
)

// JoinPath appends the name of a field to a path, as the paths of [Call.Redacted] are written:
// names that a path would not show clearly are quoted.
func JoinPath(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\"\n") {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// step leads from a value of JSON to one in it: to the field of an object, or to the elements of an
// array.
type step struct {
	name    string
	element bool
	parts   []string // the name at its dots, in the form of plainName; nil if no pathEnd needs them
}

// Bounds of the paths of a call: a message can have as many secret fields as it has room for, each
// with a path as long as the message.
const (
	maxRedacted      = 1000
	maxRedactedBytes = 1000 // of a path
)

// redactedPaths are the paths of the values of a call that were replaced.
type redactedPaths struct {
	list  []string
	known map[string]bool
}

// add adds a path, unless there are too many. One that is too long is cut to that of a value
// around it.
func (p *redactedPaths) add(prefix string, steps []step) {
	if len(p.list) == maxRedacted {
		return
	}
	path := prefix
	for _, s := range steps {
		if len(path)+len(s.name) > maxRedactedBytes {
			break
		}
		if s.element {
			path += "[*]"
		} else {
			path = JoinPath(path, s.name)
		}
	}
	if p.known[path] {
		return
	}
	if p.known == nil {
		p.known = make(map[string]bool)
	}
	p.known[path] = true
	p.list = append(p.list, path)
}

// pathEnd is the end of a path in Options.Secret: names in the form of plainName, the last one
// first.
type pathEnd []string

func newPathEnd(text string) pathEnd {
	var end pathEnd
	for name := range strings.SplitSeq(strings.ReplaceAll(text, "[*]", ""), ".") {
		end = append(end, plainName(name))
	}
	slices.Reverse(end)
	return end
}

// matches reports whether the steps end like this. A field whose own name has dots matches too.
func (e pathEnd) matches(steps []step) bool {
	rest := e
	for i := len(steps) - 1; i >= 0 && len(rest) > 0; i-- {
		for j := len(steps[i].parts) - 1; j >= 0 && len(rest) > 0; j-- {
			if steps[i].parts[j] != rest[0] {
				return false
			}
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

// partsOf returns the parts of a step.
func partsOf(name string) []string {
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = plainName(parts[i])
	}
	return parts
}
