package jsonschema_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/jsonschema"
)

// Names of components have the characters that OpenAPI allows.
func TestCleanName(t *testing.T) {
	for name, want := range map[string]string{
		"main.Args":                                "main.Args",
		"test.library.v1.Book":                     "test.library.v1.Book",
		"main.Page[example.com/shop.Item]":         "main.Page_shop.Item",
		"main.Pair[example.com/a.X,example.b/c.Y]": "main.Pair_a.X_c.Y",
		"main.Of[*main.Page[int]]":                 "main.Of_main.Page_int",
		"main.Größe":                               "main.Gr__e",
		"":                                         "Type",
	} {
		if got := jsonschema.CleanName(name); got != want {
			t.Errorf("%q is named %q, want %q", name, got, want)
		}
	}
}
