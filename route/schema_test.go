package route_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/route"
)

var update = flag.Bool("update", false, "write docs/governance/rules.schema.json")

const schemaFile = "../docs/governance/rules.schema.json"

func TestSchemaFileIsUpToDate(t *testing.T) {
	want, err := route.Schema()
	must(t, err)
	want = append(want, '\n')
	if *update {
		must(t, os.WriteFile(schemaFile, want, 0o644))
	}
	got, err := os.ReadFile(schemaFile)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date: go test ./route -run Schema -update", schemaFile)
	}
}

// Every value that the schema lists is valid, and no other state and mode is.
func TestSchemaListsValues(t *testing.T) {
	data, err := route.Schema()
	must(t, err)
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Enum, Examples []string
				Values         string `json:"x-values"`
			}
		} `json:"$defs"`
	}
	must(t, json.Unmarshal(data, &schema))
	documents := map[string]string{
		"state": `{"rules":{"instances":[{"match":{"id":"a"},"state":%q}]}}`,
		"mode":  `{"rules":{"methods":[{"mode":%q}]}}`,
		"code":  `{"rules":{"mocks":[{"error":{"code":%q}}]}}`,
		"group": `{"rules":{"conditions":[{"to":{"group":%q}}]}}`, "version": `{"rules":{"conditions":[{"to":{"version":%q}}]}}`, "zone": `{"rules":{"conditions":[{"to":{"zone":%q}}]}}`,
	}
	seen := make(map[string]int)
	for _, def := range schema.Defs {
		for key, p := range def.Properties {
			for _, value := range append(p.Enum, p.Examples...) {
				seen[key]++
				if _, err := route.Parse(fmt.Appendf(nil, documents[key], value)); err != nil {
					t.Errorf("%s %q: %v", key, value, err)
				}
			}
			if p.Enum != nil {
				if _, err := route.Parse(fmt.Appendf(nil, documents[key], "other")); err == nil {
					t.Errorf("%s is an enum of %q, and others are valid", key, p.Enum)
				}
			}
		}
	}
	if seen["state"] != 3 || seen["mode"] != 4 || seen["code"] < 10 || seen["zone"] != 1 {
		t.Errorf("the schema lists %v", seen)
	}
	if m := schema.Defs["Match"].Properties["methods"]; m.Values != "methods" {
		t.Errorf("the methods of a match are names of %q", m.Values)
	}
}

// The documentation names every key of every rule.
func TestPageNamesEveryKey(t *testing.T) {
	page, err := os.ReadFile("../docs/governance/rules.md")
	must(t, err)
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type)
	walk = func(t2 reflect.Type) {
		for t2.Kind() == reflect.Pointer || t2.Kind() == reflect.Slice || t2.Kind() == reflect.Map {
			t2 = t2.Elem()
		}
		if t2.Kind() != reflect.Struct || seen[t2] || t2.PkgPath() != reflect.TypeFor[route.RuleSet]().PkgPath() {
			return
		}
		seen[t2] = true
		for i := range t2.NumField() {
			f := t2.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() {
				continue
			}
			if !bytes.Contains(page, []byte("`"+key+"`")) {
				t.Errorf("docs/governance/rules.md does not explain `%s` of %s", key, t2.Name())
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[route.Document]())
}
