package anser

import (
	"fmt"
	"go/token"
	"reflect"
	"strings"
)

// Params names the arguments and results of methods that have several, as in a Go signature
// without the types:
//
//	s.RegisterFunc("Math.DivMod", divMod, anser.Params("(a, b) (q, r)"))
//	s.Register(new(Math), anser.Params("DivMod(a, b) (q, r)", "Sum(list) total"))
//
// The names in a function are lost when it is compiled. With Params a caller may send an object
// instead of an array, and [MethodsName] shows the names. The context and the error are left out.
func Params(signatures ...string) HandleOption {
	return handleOption(func(o *handleOptions) { o.params = append(o.params, signatures...) })
}

// params is one signature of Params.
type params struct {
	method  string // "" for any
	in, out []string
}

func parseParams(text string) (*params, error) {
	bad := fmt.Errorf("anser.Params: %q is not of the form \"Method(a, b) (c, d)\" or \"(a, b) (c, d)\"", text)
	name, rest, ok := strings.Cut(text, "(")
	list, results, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return nil, bad
	}
	p := &params{method: strings.TrimSpace(name)}
	results = strings.TrimSpace(results)
	if inner, ok := strings.CutPrefix(results, "("); ok {
		if results, ok = strings.CutSuffix(inner, ")"); !ok {
			return nil, bad
		}
	}
	for into, list := range map[*[]string]string{&p.in: list, &p.out: results} {
		if strings.TrimSpace(list) == "" {
			continue
		}
		seen := make(map[string]bool)
		for n := range strings.SplitSeq(list, ",") {
			n = strings.TrimSpace(n)
			if !token.IsIdentifier(n) || seen[n] {
				return nil, fmt.Errorf("anser.Params: %q is not a name, or is there twice, in %q", n, text)
			}
			seen[n] = true
			*into = append(*into, n)
		}
	}
	return p, nil
}

// nameParams applies what Params says about m.
func (m *method) nameParams(signatures []string) error {
	own := m.name[strings.LastIndexByte(m.name, '.')+1:]
	for _, text := range signatures {
		p, err := parseParams(text)
		if err != nil {
			return fmt.Errorf("method %q: %w", m.name, err)
		}
		if p.method != "" && p.method != own {
			continue
		}
		if m.in == nil {
			if p.method == "" {
				continue // of the others of a service
			}
			return fmt.Errorf("method %q: anser.Params: it has one message and no list of arguments: leave %q out", m.name, text)
		}
		for _, side := range []struct {
			e     *elements
			names []string
		}{{m.in, p.in}, {m.out, p.out}} {
			if len(side.names) != len(side.e.types) {
				return fmt.Errorf("method %q: anser.Params: %q has %d %ss, the function has %d", m.name, text, len(side.names), side.e.layout.What, len(side.e.types))
			}
			side.e.layout.Names, side.e.given = side.names, len(side.names) > 0
		}
	}
	return nil
}

// checkParams finds signatures of methods that the type does not have.
func checkParams(t reflect.Type, opts []HandleOption) error {
	var o handleOptions
	for _, opt := range opts {
		if opt != nil {
			opt.applyHandle(&o)
		}
	}
	for _, text := range o.params {
		p, err := parseParams(text)
		if err != nil {
			return err
		}
		if _, ok := t.MethodByName(p.method); !ok {
			return fmt.Errorf("anser.Params: %q is of no method of %s: begin it with the name of one", text, t)
		}
	}
	return nil
}
