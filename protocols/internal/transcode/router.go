package transcode

import (
	"fmt"
	"slices"
	"strings"
)

// Any is the method of HTTP of a rule for all methods.
const Any = "*"

// Router finds what is bound to an HTTP method and a path. The zero value is empty. It is safe
// for concurrent use while nothing is added.
type Router[T any] struct{ root node[T] }

// node is a place in the tree of segments. At each, a literal is tried before *, and * before **.
type node[T any] struct {
	literals map[string]*node[T]
	one      *node[T]
	rest     *node[T]
	ends     map[string]map[string]*end[T] // by verb, and by method of HTTP
}

type end[T any] struct {
	template *Template
	value    T
}

// Add binds a value. It returns an error if the method and the paths of the template are bound
// already; value is printed in it.
func (r *Router[T]) Add(method string, t *Template, value T) error {
	n := &r.root
	for _, s := range t.segments {
		next := &n.one
		switch {
		case !s.wild:
			if n.literals == nil {
				n.literals = make(map[string]*node[T])
			}
			child := n.literals[s.text]
			next = &child
			if child == nil {
				child = new(node[T])
				n.literals[s.text] = child
			}
		case s.text == rest:
			next = &n.rest
		}
		if *next == nil {
			*next = new(node[T])
		}
		n = *next
	}
	if n.ends == nil {
		n.ends = make(map[string]map[string]*end[T])
	}
	if n.ends[t.verb] == nil {
		n.ends[t.verb] = make(map[string]*end[T])
	}
	if old := n.ends[t.verb][method]; old != nil {
		return fmt.Errorf("%s %s of %v is %s %s of %v: give one of them another path", method, t, value, method, old.template, old.value)
	}
	n.ends[t.verb][method] = &end[T]{t, value}
	return nil
}

// maxParts is the number of segments of a path that can match.
const maxParts = 1000

// Match returns the value for a request with an escaped path, and the values of the template's
// variables. Without one, allowed are the HTTP methods that the path is bound to.
func (r *Router[T]) Match(method, path string) (value T, values []string, ok bool, allowed []string) {
	m := matcher[T]{method: method}
	parts, ok := split(path)
	if !ok || len(parts) > maxParts {
		return value, nil, false, nil
	}
	if last := len(parts) - 1; last >= 0 { // a verb is tried before a segment with a colon
		if colon := strings.LastIndexByte(parts[last], ':'); colon > 0 {
			m.parts, m.verb = slices.Clone(parts), parts[last][colon+1:]
			m.parts[last] = parts[last][:colon]
			if m.verb != "" && m.visit(&r.root, 0) {
				return m.found.value, m.values, true, nil
			}
		}
	}
	m.parts, m.verb = parts, ""
	if m.visit(&r.root, 0) {
		return m.found.value, m.values, true, nil
	}
	slices.Sort(m.allowed)
	return value, nil, false, slices.Compact(m.allowed)
}

// matcher looks for a path. A node is visited once at most, since its depth is the position in the
// path.
type matcher[T any] struct {
	method, verb string
	parts        []string
	found        *end[T]
	values       []string
	allowed      []string
}

func (m *matcher[T]) visit(n *node[T], i int) bool {
	if i == len(m.parts) && m.take(n) {
		return true
	}
	if i < len(m.parts) {
		if child := n.literals[m.parts[i]]; child != nil && m.visit(child, i+1) {
			return true
		}
		if n.one != nil && m.visit(n.one, i+1) {
			return true
		}
	}
	return n.rest != nil && m.take(n.rest)
}

func (m *matcher[T]) take(n *node[T]) bool {
	methods := n.ends[m.verb]
	e := methods[m.method]
	if e == nil {
		e = methods[Any]
	}
	if e == nil {
		for name := range methods {
			m.allowed = append(m.allowed, name)
		}
		return false
	}
	values, ok := e.template.values(m.parts)
	if ok {
		m.found, m.values = e, values
	}
	return ok
}
