package route_test

import (
	"bytes"
	"flag"
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
