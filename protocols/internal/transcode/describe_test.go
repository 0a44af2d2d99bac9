package transcode_test

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// The parameters are the fields that a query may set, and setting them works.
func TestParameters(t *testing.T) {
	m := query(t)
	all := []string{"name", "pageSize", "big", "ratio", "yes", "raw", "color", "tags", "wait", "maybe", "count", "left", "right", "waits"}
	for _, row := range []struct {
		rule transcode.Rule
		want []string
	}{
		{transcode.Rule{Method: "GET", Template: "/v1/x"}, all},
		{transcode.Rule{Method: "GET", Template: "/v1/{name}"}, all[1:]},
		{transcode.Rule{Method: "POST", Template: "/v1/x", Body: "*"}, nil},
		{transcode.Rule{Method: "POST", Template: "/v1/{page_size}", Body: "inner"}, slices.Concat(all[:1], all[2:])},
		{transcode.Rule{Method: "POST", Template: "/v1/{inner.big}", Body: "tags"}, slices.Concat(all[:7], all[8:])},
	} {
		b, err := transcode.Bind(row.rule, m, m)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range b.Parameters(m) {
			names = append(names, p.Name)
		}
		if !slices.Equal(names, row.want) {
			t.Errorf("%v has the parameters %q, want %q", row.rule, names, row.want)
		}
	}
}
