package gocode

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

const tuplePackage = protogen.GoImportPath("github.com/anser-rpc/anser/codec/tuple")

func (w *writer) argsType(m *Method) string    { return w.constant(m) + "_Args" }
func (w *writer) resultsType(m *Method) string { return w.constant(m) + "_Results" }

// tuples writes the messages of methods that have several arguments or results.
func (w *writer) tuples() {
	for i := range w.s.Methods {
		m := &w.s.Methods[i]
		if !m.Tuple {
			continue
		}
		name := w.s.Name + "." + m.Name
		w.tuple(w.argsType(m), "the arguments of "+name, "argument", m.Args)
		w.tuple(w.resultsType(m), "the results of "+name, "result", m.Results)
	}
}

// tuple writes a struct that is encoded as an array of its fields, or as an object with their names
// if it was decoded from one.
func (w *writer) tuple(name, what, element string, values []Value) {
	layout := lower(name)
	var fields, names, types []string
	for _, v := range values {
		fields = append(fields, "&m."+v.Field)
		names = append(names, fmt.Sprintf("%q", v.Name))
		types = append(types, fmt.Sprintf("%q", v.Type))
	}
	list := strings.Join(append([]string{""}, fields...), ", ")
	w.P("// ", name, " are ", what, ".")
	w.P("type ", name, " struct {")
	for _, v := range values {
		w.P(v.Field, " ", v.Type)
	}
	w.P("object bool // encoded with names")
	w.P("}")
	w.P()
	w.P("var ", layout, " = ", tuplePackage.Ident("Layout"), "{What: ", fmt.Sprintf("%q", element), ", Names: []string{",
		strings.Join(names, ", "), "}, Types: []string{", strings.Join(types, ", "), "}}")
	w.P()
	w.P("// Tuple returns the layout of the values and pointers to them.")
	w.P("func (m *", name, ") Tuple() (*", tuplePackage.Ident("Layout"), ", []any) { return &", layout, ", []any{", strings.Join(fields, ", "), "} }")
	w.P()
	w.P("// MarshalMsg appends the values to b as MessagePack.")
	w.P("func (m *", name, ") MarshalMsg(b []byte) ([]byte, error) { return ", layout, ".AppendMsg(b, m.object", list, ") }")
	w.P()
	w.P("// UnmarshalMsg decodes MessagePack and returns the bytes after it.")
	w.P("func (m *", name, ") UnmarshalMsg(data []byte) (rest []byte, err error) {")
	w.P("m.object, rest, err = ", layout, ".DecodeMsg(data", list, ")")
	w.P("return rest, err")
	w.P("}")
	w.P()
	w.P("// MarshalJSON returns the values as JSON.")
	w.P("func (m *", name, ") MarshalJSON() ([]byte, error) { return ", layout, ".AppendJSON(nil, m.object", list, ") }")
	w.P()
	w.P("// UnmarshalJSON decodes JSON.")
	w.P("func (m *", name, ") UnmarshalJSON(data []byte) (err error) {")
	w.P("m.object, err = ", layout, ".DecodeJSON(data", list, ")")
	w.P("return err")
	w.P("}")
	w.P()
}

// tupleCall writes the body of a client's method and its end.
func (w *writer) tupleCall(m *Method, opts string) {
	var args, results []string
	for _, v := range m.Args {
		args = append(args, v.Field+": "+v.Param)
	}
	for _, v := range m.Results {
		results = append(results, "out."+v.Field)
	}
	out := "out, err := "
	if len(results) == 0 {
		out = "_, err = "
	}
	w.P(out, w.constant(m), ".Call(ctx, x.c, &", w.argsType(m), "{", strings.Join(args, ", "), "}, x.with(", opts, ", opts)...)")
	if len(results) == 0 {
		w.P("return err")
	} else {
		w.P("if err != nil {")
		w.P("return ", zeros(m.Results), "err")
		w.P("}")
		w.P("return ", strings.Join(results, ", "), ", nil")
	}
	w.P("}")
	w.P()
}

// tupleHandler returns a function that calls a server's method.
func (w *writer) tupleHandler(m *Method) string {
	var b strings.Builder
	fmt.Fprintf(&b, "func(ctx %s, in *%s) (*%s, error) {\n", w.ctx(), w.argsType(m), w.resultsType(m))
	var args, fields, results []string
	for _, v := range m.Args {
		args = append(args, ", in."+v.Field)
	}
	for _, v := range m.Results {
		results = append(results, v.Param+", ")
		fields = append(fields, v.Field+": "+v.Param+", ")
	}
	fmt.Fprintf(&b, "%serr := h.%s(ctx%s)\n", strings.Join(results, ""), m.Go, strings.Join(args, ""))
	b.WriteString("if err != nil {\nreturn nil, err\n}\n")
	fmt.Fprintf(&b, "return &%s{%sobject: in.object}, nil\n}", w.resultsType(m), strings.Join(fields, ""))
	return b.String()
}

// params returns ", a int, b string".
func params(values []Value) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, ", %s %s", v.Param, v.Type)
	}
	return b.String()
}

// blanks returns ", _ int, _ string".
func blanks(values []Value) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, ", _ %s", v.Type)
	}
	return b.String()
}

// results returns "q int, r string, ".
func results(values []Value) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%s %s, ", v.Param, v.Type)
	}
	return b.String()
}

// zeros returns the names of the results, which are zero until they are set.
func zeros(values []Value) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(v.Param + ", ")
	}
	return b.String()
}
