package openapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
)

type (
	low    struct{ A, B int }
	Middle struct {
		low
		B int `json:"b"`
		C int `json:",omitempty"`
	}
	Left  struct{ Same, OnlyLeft int }
	Right struct {
		Same      int
		OnlyRight int `json:"only_right"`
	}
	Tagged struct {
		X int `json:"Y"`
	}
	Untagged struct{ Y int }
	Loop     struct {
		*Loop
		Z int
	}
	Number int
	bytes_ []byte
)

// The members of a struct are the ones of encoding/json.
func TestGoFields(t *testing.T) {
	for _, v := range []any{
		&struct{}{},
		&low{},
		&Middle{C: 1},
		&struct {
			Left
			Right
		}{},
		&struct {
			*Left
			Right
		}{Left: new(Left)},
		&struct {
			Tagged
			Untagged
		}{},
		&struct {
			Left `json:"left"`
			Right
		}{},
		&struct {
			Middle
			A string `json:"a"`
			B string
		}{Middle: Middle{C: 1}},
		&Loop{Loop: &Loop{}},
		&struct {
			Number
			bytes_
			int
			Skipped int `json:"-"`
			Ä       int `json:"ä!#"`
		}{},
		&struct {
			Left
			Inner struct{ Left }
		}{},
	} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var written map[string]json.RawMessage
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range goFields(reflect.TypeOf(v).Elem()) {
			names = append(names, f.name)
		}
		slices.Sort(names)
		if want := slices.Sorted(maps.Keys(written)); !slices.Equal(names, want) {
			t.Errorf("%T has the members %q, want %q", v, names, want)
		}
	}
}
