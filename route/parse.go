package route

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/spelling"
	"github.com/anser-rpc/anser/registry"
)

// Parse decodes a document: JSON with the fields of [Document]. It is strict: the error names the
// path of every unknown key or invalid value, and suggests the nearest valid key:
// "rules.split[0].percnt: unknown key, did you mean percent?".
func Parse(data []byte) (*Document, error) {
	if len(data) > registry.MaxDocument {
		return nil, fmt.Errorf("%w: it has %d bytes: at most %d", registry.ErrTooLarge, len(data), registry.MaxDocument)
	}
	if err := codec.CheckJSON(data); err != nil {
		return nil, fmt.Errorf("the document is not JSON: %w", err)
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("the document is not JSON: %w", err)
	}
	p := new(problems)
	p.check("", tree, reflect.TypeFor[Document]())
	if p.list != nil {
		return nil, errors.Join(p.list...)
	}
	d := new(Document)
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	if err := d.Rules.Validate(); err != nil {
		return nil, err
	}
	return d, nil
}

// maxProblems is the maximum number of reported problems.
const maxProblems = 20

// problems collects errors with paths.
type problems struct{ list []error }

func (p *problems) add(path, format string, args ...any) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, fmt.Errorf("%s: %s", cmp.Or(path, "document"), fmt.Sprintf(format, args...)))
	}
}

var (
	patternsType = reflect.TypeFor[Patterns]()
	durationType = reflect.TypeFor[Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	rawType      = reflect.TypeFor[json.RawMessage]()
)

// check compares a value with the type that it will be decoded into.
func (p *problems) check(path string, v any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case rawType:
		return
	case patternsType:
		p.checkPatterns(path, v)
		return
	case durationType, timeType:
		text, ok := v.(string)
		if !ok {
			p.add(path, "want a text, have %s", kind(v))
		} else if _, err := time.ParseDuration(text); err != nil && t == durationType {
			p.add(path, "%q is not a duration: write it like 250ms or 1m30s", text)
		} else if _, err := time.Parse(time.RFC3339, text); err != nil && t == timeType {
			p.add(path, "%q is no point in time: write it like 2026-01-02T15:04:05Z", text)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		p.checkStruct(path, v, t)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			p.add(path, "want a list, have %s", kind(v))
		}
		for i, e := range list {
			p.check(fmt.Sprintf("%s[%d]", path, i), e, t.Elem())
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			p.add(path, "want an object, have %s", kind(v))
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			p.check(path+"."+k, m[k], t.Elem())
		}
	default:
		p.checkScalar(path, v, t)
	}
}

func (p *problems) checkPatterns(path string, v any) {
	switch v := v.(type) {
	case string:
	case []any:
		for i, e := range v {
			if _, ok := e.(string); !ok {
				p.add(fmt.Sprintf("%s[%d]", path, i), "want a text, have %s", kind(e))
			}
		}
	default:
		p.add(path, "want a text or a list of texts, have %s", kind(v))
	}
}

func (p *problems) checkStruct(path string, v any, t reflect.Type) {
	m, ok := v.(map[string]any)
	if !ok {
		p.add(path, "want an object, have %s", kind(v))
		return
	}
	fields := make(map[string]reflect.StructField)
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			fields[keyOf(f)] = f
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f, ok := fields[k]
		if !ok {
			p.add(join(path, k), "unknown key%s", suggest(k, slices.Sorted(maps.Keys(fields))))
			continue
		}
		p.check(join(path, k), m[k], f.Type)
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if _, ok := m[k]; !ok && !strings.Contains(fields[k].Tag.Get("json"), ",omit") {
			p.add(join(path, k), "is missing: %s", fields[k].Tag.Get("doc"))
		}
	}
}

func (p *problems) checkScalar(path string, v any, t reflect.Type) {
	want := ""
	switch t.Kind() {
	case reflect.String:
		if _, ok := v.(string); !ok {
			want = "a text"
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			want = "true or false"
		}
	default:
		n, ok := v.(json.Number)
		if !ok {
			want = "a number"
		} else if json.Unmarshal([]byte(n), reflect.New(t).Interface()) != nil {
			p.add(path, "%s is out of range, or not whole", n)
		}
	}
	if want != "" {
		p.add(path, "want %s, have %s", want, kind(v))
	}
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the text %q", v)
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		return "the number " + v.String()
	case []any:
		return "a list"
	}
	return "an object"
}

// suggest returns the nearest key, or all keys if none is near.
func suggest(key string, keys []string) string {
	best, least := "", len(key)
	for _, k := range keys {
		if d := spelling.Distance(strings.ToLower(key), k, 64); d < least {
			best, least = k, d
		}
	}
	if best != "" && least <= 1+len(best)/3 {
		return fmt.Sprintf(", did you mean %s?", best)
	}
	return ": the keys are " + strings.Join(keys, ", ")
}
