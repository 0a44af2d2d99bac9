package fbs

import (
	"maps"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// checker looks up what names refer to, lays out objects, and finds mistakes that need the whole
// schema.
type checker struct {
	*report
	schema   *Schema
	file     *File // that is checked
	objects  map[string]*Object
	enums    map[string]*Enum
	services map[string]*Service
	base     map[*File]int // what the order of a file's definitions begins with
	declared map[string]bool
}

func check(r *report, s *Schema) {
	c := &checker{
		report: r, schema: s, objects: make(map[string]*Object), enums: make(map[string]*Enum), services: make(map[string]*Service),
		base: make(map[*File]int),
	}
	n := 0
	for _, f := range s.Files {
		f.visible = f.see()
		c.base[f] = n
		n += len(f.Objects) + len(f.Enums) + len(f.Services) + 1
		for _, o := range f.Objects {
			c.define(&o.Definition, f)
			c.objects[o.FullName()] = o
		}
		for _, e := range f.Enums {
			c.define(&e.Definition, f)
			c.enums[e.FullName()] = e
		}
		for _, v := range f.Services {
			v.order += c.base[f]
			if before := c.services[v.FullName()]; before != nil {
				c.wrong(v.At, "rpc_service %s is defined at %v, too: rename one of them", v.FullName(), before.At)
			}
			c.services[v.FullName()] = v
		}
	}
	for _, f := range s.Files {
		c.file, c.declared = f, f.declared()
		c.fileTypes(f)
	}
	for _, f := range s.Files {
		c.file = f
		c.fileRest(f)
	}
}

// define reports a name that is taken.
func (c *checker) define(d *Definition, f *File) {
	d.order += c.base[f]
	name := d.FullName()
	var before *Definition
	if o := c.objects[name]; o != nil {
		before = &o.Definition
	} else if e := c.enums[name]; e != nil {
		before = &e.Definition
	}
	switch {
	case before != nil && before.File == f:
		c.wrong(d.At, "%s is defined in line %d, too: rename one of them", name, before.At.Line)
	case before != nil:
		c.wrong(d.At, "%s is defined at %v, too: rename one of them, or include that file", name, before.At)
	case bases[d.Name] != None:
		c.wrong(d.At, "%s is the name of a type of the language: use another one", d.Name)
	}
}

// outward calls try with a full name for each namespace from that of the reference outward, until
// it returns true.
func (r *reference) outward(try func(name string) bool) {
	for namespace := r.namespace; ; {
		if try(qualified(namespace, r.name)) || namespace == "" {
			return
		}
		namespace = namespace[:max(strings.LastIndexByte(namespace, '.'), 0)]
	}
}

// place is the order of the definition that a reference is in.
func (c *checker) place(r *reference) int { return c.base[c.file] + r.order }

// enum returns the enum that the reference means, if it is defined before it.
func (c *checker) enum(r *reference) (found *Enum) {
	r.outward(func(name string) bool {
		if e := c.enums[name]; e != nil && c.file.visible[e.File] && e.order < c.place(r) {
			found = e
		}
		return found != nil
	})
	return found
}

// object returns the object that the reference means, or nil.
func (c *checker) object(r *reference) (found *Object) {
	r.outward(func(name string) bool {
		if o := c.objects[name]; o != nil && c.file.visible[o.File] {
			found = o
		}
		return found != nil
	})
	return found
}

// unknown reports that a name means nothing, and says why.
func (c *checker) unknown(r *reference) {
	var later *Enum
	r.outward(func(name string) bool {
		if e := c.enums[name]; e != nil && c.file.visible[e.File] {
			later = e
		}
		return later != nil
	})
	if later != nil {
		c.wrong(r.at, "%s is defined after its use, in line %d: an enum or union must be defined before it", r.name, later.At.Line)
		return
	}
	var hint *Definition
	consider := func(d *Definition) {
		if d.Name == r.name || d.FullName() == r.name {
			if hint == nil || c.file.visible[d.File] && !c.file.visible[hint.File] {
				hint = d
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		consider(&c.objects[name].Definition)
	}
	for _, name := range slices.Sorted(maps.Keys(c.enums)) {
		consider(&c.enums[name].Definition)
	}
	switch {
	case hint == nil:
		c.wrong(r.at, "there is no type %s: define it, or include the file that does", r.name)
	case !c.file.visible[hint.File]:
		c.wrong(r.at, "%s is defined in %s, which this file does not include: include it", hint.FullName(), hint.File.Path)
	default:
		c.wrong(r.at, "there is no type %s here: write %s for that of line %d of %s", r.name, hint.FullName(), hint.At.Line, hint.File.Path)
	}
}

// typeOf looks up a type. It returns false after it reported a mistake.
func (c *checker) typeOf(ref *typeReference) (Type, bool) {
	var t Type
	if t.Base = bases[ref.name]; t.Base == None {
		if e := c.enum(&ref.reference); e != nil {
			t.Base, t.Enum = e.Type, e
			if e.Union {
				t.Base = Union
			}
		} else if o := c.object(&ref.reference); o != nil {
			t.Base, t.Object = Obj, o
		} else {
			c.unknown(&ref.reference)
			return t, false
		}
	}
	if ref.vector {
		t.Element, t.Base, t.Length = t.Base, Vector, ref.length
		if ref.length > 0 {
			t.Base = Array
		}
	}
	return t, true
}

// fileTypes looks up the types of fields and members, and lays out structs, in the order of the
// definitions.
func (c *checker) fileTypes(f *File) {
	for _, o := range f.Objects {
		c.attributes(o.Attributes)
		c.objectTypes(o)
	}
	for _, e := range f.Enums {
		c.attributes(e.Attributes)
		if a := e.Attributes.Get("force_align"); a != nil {
			c.wrong(a.At, "force_align is for structs and vectors, not for %s", e.Name)
		}
		for _, v := range e.Values {
			c.attributes(v.Attributes)
			if v.ref == nil {
				continue
			}
			t, ok := c.typeOf(v.ref)
			if ok && t.Base != Obj && t.Base != String {
				c.wrong(v.ref.at, "member %s of union %s is %v: a member is a table, a struct or string", v.Name, e.Name, t)
			}
			v.Type = t
		}
	}
}

// fileRest does what needs the types of all files.
func (c *checker) fileRest(f *File) {
	for _, o := range f.Objects {
		for _, field := range o.Fields {
			a := field.Attributes.Get("nested_flatbuffer")
			if a == nil {
				continue
			}
			r := reference{name: a.Value, namespace: o.Namespace, at: a.At}
			if field.Nested = c.object(&r); field.Nested == nil {
				c.unknown(&r)
			}
		}
	}
	for _, s := range f.Services {
		c.attributes(s.Attributes)
		names := make(map[string]bool)
		for _, m := range s.Methods {
			if names[m.Name] {
				c.wrong(m.At, "rpc_service %s has two methods %s: rename one of them", s.Name, m.Name)
			}
			names[m.Name] = true
			c.attributes(m.Attributes)
			c.method(m)
		}
	}
	if f.root == nil {
		return
	}
	o := c.object(f.root)
	switch {
	case o == nil:
		c.unknown(f.root)
	case o.Struct:
		c.wrong(f.root.at, "the root type %s is a struct: it must be a table", o.Name)
	}
	f.Root = o
}

func (c *checker) method(m *Method) {
	m.Request, m.Reply = c.message(m, m.request), c.message(m, m.reply)
	if !m.Oneway || m.Reply == nil {
		return
	}
	switch {
	case m.ClientStream || m.ServerStream:
		c.wrong(m.At, "method %s is a stream and cannot be oneway: remove one of the attributes", m.Name)
	case len(m.Reply.Fields) > 0:
		c.wrong(m.reply.at, "method %s is oneway and returns nothing: let it return a table without fields", m.Name)
	}
}

// message returns the table that a method takes or returns.
func (c *checker) message(m *Method, r *reference) *Object {
	if e := c.enum(r); e != nil || bases[r.name] != None {
		c.wrong(r.at, "method %s takes and returns tables, and %s is none", m.Name, r.name)
		return nil
	}
	o := c.object(r)
	if o == nil {
		c.unknown(r)
	} else if o.Struct {
		c.wrong(r.at, "method %s takes and returns tables, and %s is a struct: put it into a table", m.Name, r.name)
	}
	return o
}

// attributes reports attributes that are neither known nor declared.
func (c *checker) attributes(list Attributes) {
	for _, a := range list {
		if !c.declared[a.Name] {
			c.wrong(a.At, "the attribute %s is unknown: correct it, or declare it with: attribute %q;", a.Name, a.Name)
		}
	}
}

// position returns where a field's type is, for errors.
func (f *Field) position() contract.Position {
	if f.ref != nil {
		return f.ref.at
	}
	return f.At
}
