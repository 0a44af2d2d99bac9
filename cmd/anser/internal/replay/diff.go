// Package replay sends recorded calls again, and compares the replies.
package replay

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/record"
)

// difference is a place at which two messages differ.
type difference struct {
	// path is where, with [*] for the elements of arrays: "items[*].price". It is empty for the
	// whole message.
	path string
	// exact is the same with the numbers of the elements.
	exact    string
	old, new string // JSON; empty for a value that is missing
}

// maxDifferences bounds the differences of one message: the rest says nothing new.
const maxDifferences = 100

// compare returns where two JSON texts differ. They are equal if their values are: the order of
// keys, white space and the way in which a number is written do not count.
func compare(old, new []byte) []difference {
	if bytes.Equal(old, new) {
		return nil
	}
	a, errA := parse(old)
	b, errB := parse(new)
	if errA != nil || errB != nil {
		return []difference{{old: string(old), new: string(new)}}
	}
	var c comparison
	c.values("", "", a, b)
	return c.found
}

func parse(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// comparison collects the differences of two messages.
type comparison struct{ found []difference }

func (c *comparison) add(path, exact, old, new string) {
	if len(c.found) < maxDifferences {
		c.found = append(c.found, difference{path, exact, old, new})
	}
}

func (c *comparison) values(path, exact string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			c.objects(path, exact, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			c.arrays(path, exact, a, b)
			return
		}
	case json.Number:
		if b, ok := b.(json.Number); ok && sameNumber(a.String(), b.String()) {
			return
		}
	default: // string, bool, nil
		switch b.(type) {
		case map[string]any, []any:
		default:
			if a == b {
				return
			}
		}
	}
	c.add(path, exact, text(a), text(b))
}

func (c *comparison) objects(path, exact string, a, b map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[name]; ok {
			c.values(record.JoinPath(path, name), record.JoinPath(exact, name), a[name], other)
		} else {
			c.add(record.JoinPath(path, name), record.JoinPath(exact, name), text(a[name]), "")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			c.add(record.JoinPath(path, name), record.JoinPath(exact, name), "", text(b[name]))
		}
	}
}

func (c *comparison) arrays(path, exact string, a, b []any) {
	for i := range max(len(a), len(b)) {
		at := exact + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(a):
			c.add(path+"[*]", at, "", text(b[i]))
		case i >= len(b):
			c.add(path+"[*]", at, text(a[i]), "")
		default:
			c.values(path+"[*]", at, a[i], b[i])
		}
	}
}

// maxExponent is that of numbers whose values are compared if they are written differently.
const maxExponent = 4096

// sameNumber reports whether two numbers of JSON have the same value.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if exponent(a) > maxExponent || exponent(b) > maxExponent {
		return false
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// exponent returns the size of the exponent of a number, without its sign.
func exponent(number string) int {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimLeft(number[i+1:], "+-"))
	if err != nil {
		return maxExponent + 1
	}
	return n
}

// maxText bounds a value in a report.
const maxText = 200

// text returns a value as JSON, cut if it is long.
func text(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	return cut(strings.TrimSuffix(b.String(), "\n"))
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
