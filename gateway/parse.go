package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anser-rpc/anser/internal/spelling"
)

const (
	maxConfig   = 1 << 20 // bytes
	maxProblems = 20      // that are reported
)

// Load reads the configuration in a file; see [Parse].
func Load(file string) (*Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// Parse reads a configuration in YAML, or JSON, with the fields of [Config]. It is strict: the
// error names the line of every unknown key, every value that is none, and every mistake in the
// routes. The name is that of the file. Files that the configuration names must be there and valid
// now.
func Parse(name string, text []byte) (*Config, error) {
	c := &Config{name: name, text: bytes.Clone(text), line: make(map[string]int)}
	if len(text) > maxConfig {
		return nil, fmt.Errorf("%s: the configuration has %d bytes: at most %d", name, len(text), maxConfig)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	r := &reader{config: c}
	if len(doc.Content) > 0 {
		r.check("", doc.Content[0], reflect.TypeFor[Config](), 0)
		if r.problems == nil {
			if err := doc.Content[0].Decode(c); err != nil {
				return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
			}
		}
	}
	if r.problems == nil {
		r.problems = c.mistakes()
	}
	return c, errors.Join(r.problems...)
}

// String returns the configuration in YAML, in one form: two with the same effect have the same
// text.
func (c *Config) String() string {
	text, err := yaml.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// reader checks the form of a configuration.
type reader struct {
	config   *Config
	problems []error
}

func (r *reader) add(n *yaml.Node, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, fmt.Errorf("%s:%d: %s", r.config.name, n.Line, fmt.Sprintf(format, args...)))
	}
}

const maxDepth = 16

// check finds keys that the type does not have, and keys that are there twice, and remembers where
// everything is.
func (r *reader) check(path string, n *yaml.Node, t reflect.Type, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode || depth > maxDepth {
		r.add(n, "aliases are not served: write the value out")
		return
	}
	r.config.line[path] = n.Line
	switch {
	case n.Tag == "!!null" && path == "": // nothing is configured
	case n.Tag == "!!null":
		// An auth whose lines are all comments would let every caller in.
		r.add(n, "%s has no value: give it one, or remove it", path)
	case t.Kind() == reflect.Struct:
		if n.Kind != yaml.MappingNode {
			r.add(n, "%s: want keys with values", cmp.Or(path, "the configuration"))
			return
		}
		r.checkKeys(path, n, t, depth)
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			r.add(n, "%s: want a list", path)
			return
		}
		for i, e := range n.Content {
			r.check(path+"["+strconv.Itoa(i)+"]", e, t.Elem(), depth+1)
		}
	case t.Kind() == reflect.Map:
		if n.Kind != yaml.MappingNode {
			r.add(n, "%s: want keys with values", path)
		}
	case n.Kind != yaml.ScalarNode:
		r.add(n, "%s: want a single value", path)
	default:
		if err := n.Decode(reflect.New(t).Interface()); err != nil {
			r.add(n, "%s: %q is not %s", path, n.Value, nameOf(t))
		}
	}
}

// nameOf returns what a value of a type is called.
func nameOf(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "a time, such as 250ms or 10s"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	}
	return "text"
}

func (r *reader) checkKeys(path string, n *yaml.Node, t reflect.Type, depth int) {
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			fields[name] = f.Type
		}
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		of := fields[key.Value]
		switch {
		case of == nil:
			r.add(key, "unknown key %q%s", key.Value, suggest(key.Value, fields))
			continue
		case seen[key.Value]:
			r.add(key, "the key %q appears twice", key.Value)
			continue
		}
		seen[key.Value] = true
		inner := key.Value
		if path != "" {
			inner = path + "." + key.Value
		}
		r.check(inner, value, of, depth+1)
	}
}

// suggest returns the key that was most likely meant.
func suggest(key string, fields map[string]reflect.Type) string {
	best, least := "", 3
	for _, name := range sortedKeys(fields) {
		if d := spelling.Distance(strings.ToLower(key), name, 64); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ": want one of " + strings.Join(slices.Collect(slices.Values(sortedKeys(fields))), ", ")
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// at returns the place of a part of the configuration, as the beginning of an error.
func (c *Config) at(path string) string {
	for p := path; ; {
		if line := c.line[p]; line > 0 {
			return fmt.Sprintf("%s:%d: ", c.name, line)
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	if c.name != "" {
		return c.name + ": " + path + ": "
	}
	return path + ": "
}
