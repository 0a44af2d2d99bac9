package route

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Schema returns the JSON Schema of a document, for editors: docs/governance/rules.schema.json is
// a copy. [Parse] also checks conditions that a schema cannot express, for example that shares add
// up to at most 100. The keyword x-values of a property says what its values are names of, such as
// methods or versions; of an object it says that of its keys.
func Schema() ([]byte, error) {
	defs := make(map[string]any)
	root := schemaOf(reflect.TypeFor[Document](), defs).(map[string]any)
	top := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Traffic rules of a service",
		"$ref":    root["$ref"],
		"$defs":   defs,
	}
	return json.MarshalIndent(top, "", "  ")
}

// schemaOf returns the schema of a type; structs go to defs.
func schemaOf(t reflect.Type, defs map[string]any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	text := map[string]any{"type": "string"}
	switch t {
	case rawType:
		return map[string]any{}
	case patternsType:
		return map[string]any{"anyOf": []any{text, map[string]any{"type": "array", "items": text}}}
	case durationType:
		return map[string]any{"type": "string", "pattern": `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$`}
	case timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(t, defs)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), defs)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), defs)}
	case reflect.String:
		return text
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func structSchema(t reflect.Type, defs map[string]any) any {
	ref := map[string]any{"$ref": "#/$defs/" + t.Name()}
	if defs[t.Name()] != nil {
		return ref
	}
	properties, required := make(map[string]any), []string{}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	defs[t.Name()] = s
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		p := map[string]any{"description": f.Tag.Get("doc")}
		for k, v := range schemaOf(f.Type, defs).(map[string]any) {
			p[k] = v
		}
		addValues(p, f.Tag.Get("values"))
		properties[keyOf(f)] = p
		if !strings.Contains(f.Tag.Get("json"), ",omit") {
			required = append(required, keyOf(f))
		}
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return ref
}

// addValues adds the values of a property to its schema, from the tag "values" of its field:
// states, modes or codes, or what the values are names of, with examples after commas.
func addValues(schema map[string]any, tag string) {
	switch tag {
	case "":
	case "states":
		schema["enum"] = []string{registry.Up.String(), registry.Draining.String(), registry.Disabled.String()}
	case "modes":
		schema["enum"] = modeNames()
	case "codes":
		schema["examples"] = codeNames() // other ways to write them are valid, too
	default:
		of, examples, ok := strings.Cut(tag, ",")
		schema["x-values"] = of
		if ok {
			schema["examples"] = strings.Split(examples, ",")
		}
	}
}
