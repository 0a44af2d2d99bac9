package transcode

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Part is a part of a path that is not fixed.
type Part struct {
	// Name is a name for it, which no other part of the template has.
	Name string
	// Variable is the index of the variable that it is of, or -1.
	Variable int
	// Whole says that it is all of the variable, and Rest that it can be several segments.
	Whole, Rest bool
}

// Parts returns the parts of the path that are not fixed. A part is named after its variable, or
// after the segment in front of it if the variable has several segments: those of
// "{name=shelves/*/books/*}" are shelf and book.
func (t *Template) Parts() []Part {
	var parts []Part
	for i, s := range t.segments {
		if !s.wild {
			continue
		}
		p := Part{Name: "path", Variable: -1, Rest: s.text == rest}
		for n := range t.variables {
			v := &t.variables[n]
			if !v.covers(i) {
				continue
			}
			p.Name, p.Variable, p.Whole = v.Field, n, v.from == i && (v.to == i+1 || v.to < 0)
			if i > v.from && !t.segments[i-1].wild && isName(t.segments[i-1].text) {
				p.Name = singular(t.segments[i-1].text)
			}
		}
		unique := p.Name
		for n := 2; slices.ContainsFunc(parts, func(o Part) bool { return o.Name == unique }); n++ {
			unique = fmt.Sprintf("%s_%d", p.Name, n)
		}
		p.Name = unique
		parts = append(parts, p)
	}
	return parts
}

// singular returns a word of a path for one thing: of shelves it is shelf.
func singular(s string) string {
	for _, end := range [...][2]string{{"ies", "y"}, {"lves", "lf"}, {"sses", "ss"}, {"ss", "ss"}, {"s", ""}} {
		if word, found := strings.CutSuffix(s, end[0]); found && word != "" {
			return word + end[1]
		}
	}
	return s
}

// Path returns the template in the form of OpenAPI, where each part that is not fixed is a name in
// braces.
func (t *Template) Path(names []string) string {
	var b strings.Builder
	n := 0
	for _, s := range t.segments {
		b.WriteByte('/')
		if !s.wild {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("{" + names[n] + "}")
		n++
	}
	if len(t.segments) == 0 {
		b.WriteByte('/')
	}
	if t.verb != "" {
		b.WriteString(":" + t.verb)
	}
	return b.String()
}

func (v *Variable) covers(i int) bool { return i >= v.from && (v.to < 0 || i < v.to) }

// Parameter is a field that a query can set.
type Parameter struct {
	Name   string // in JSON, with dots
	Fields []protoreflect.FieldDescriptor
}

// maxParameters is the number of parameters that are listed.
const maxParameters = 200

// Parameters lists the fields of a request that the query can set. A message inside itself, which
// the query can set too, is not listed.
func (b *Binding) Parameters(request protoreflect.MessageDescriptor) []Parameter {
	if b.whole {
		return nil
	}
	l := lister{binding: b}
	l.visit(request, "", nil)
	return l.list
}

type lister struct {
	binding *Binding
	list    []Parameter
}

// visit lists the fields of a message to which a path leads.
func (l *lister) visit(m protoreflect.MessageDescriptor, prefix string, path fieldPath) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		p := append(path[:len(path):len(path)], f)
		name := prefix + f.JSONName()
		switch {
		case len(l.list) >= maxParameters || f.IsMap() || len(path) == 0 && f == l.binding.body,
			slices.ContainsFunc(l.binding.variables, func(v fieldPath) bool { return slices.Equal(v, p) }):
		case hasText(f):
			l.list = append(l.list, Parameter{name, p})
		case !f.IsList() && l.opens(m, path, f):
			l.visit(f.Message(), name+".", p)
		}
	}
}

// opens reports whether a field leads into a message that is not around it already.
func (l *lister) opens(m protoreflect.MessageDescriptor, path fieldPath, f protoreflect.FieldDescriptor) bool {
	if len(path)+1 >= maxPath || f.Message().FullName() == m.FullName() {
		return false
	}
	return !slices.ContainsFunc(path, func(outer protoreflect.FieldDescriptor) bool {
		return outer.ContainingMessage().FullName() == f.Message().FullName()
	})
}
