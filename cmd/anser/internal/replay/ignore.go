package replay

import (
	"errors"
	"fmt"
	"strings"
)

// Ignored are the fields whose differences do not count. The zero value ignores none.
type Ignored struct{ rules []ignoreRule }

type ignoreRule struct {
	method string // "" for all
	path   string // with a dot in front, and without [*]
}

// ParseIgnored parses rules of the form PATH or METHOD:PATH. A path is the name of a field
// ("updated_at"), the end of a path ("order.updated_at"), or with a dot in front a path from the
// message on (".order.updated_at"). What is below an ignored field is ignored too.
func ParseIgnored(rules []string) (Ignored, error) {
	var ig Ignored
	for _, rule := range rules {
		method, path, ok := strings.Cut(rule, ":")
		if !ok {
			method, path = "", rule
		}
		path = plain(path)
		if strings.Trim(path, ".") == "" || strings.HasSuffix(path, ".") || strings.Contains(path, "..") {
			return Ignored{}, fmt.Errorf("%q names no field: use for example updated_at, order.updated_at or Orders.Get:updated_at", rule)
		}
		if ok && method == "" {
			return Ignored{}, errors.New("the method in front of a colon is empty: leave the colon out, or name one")
		}
		ig.rules = append(ig.rules, ignoreRule{method, path})
	}
	return ig, nil
}

// plain returns a path without the marks of arrays.
func plain(path string) string { return strings.ReplaceAll(path, "[*]", "") }

// ignores reports whether a difference of a method's replies does not count.
func (ig *Ignored) ignores(method, path string) bool {
	if len(ig.rules) == 0 {
		return false
	}
	full := "." + plain(path)
	for _, r := range ig.rules {
		if (r.method == "" || r.method == method) && covers(r.path, full) {
			return true
		}
	}
	return false
}

// covers reports whether a rule's path is that of a field or of one above it.
func covers(rule, full string) bool {
	anchored := strings.HasPrefix(rule, ".")
	if !anchored {
		rule = "." + rule
	}
	for from := 0; ; {
		i := strings.Index(full[from:], rule)
		if i < 0 || anchored && from+i > 0 {
			return false
		}
		end := from + i + len(rule)
		if end == len(full) || full[end] == '.' {
			return true
		}
		from += i + 1
	}
}
