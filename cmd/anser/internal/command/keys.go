package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anser-rpc/anser"
)

// unknownKey returns which member of a message the method does not have, according to the server's
// example, or "". The JSON codec would silently ignore such a member.
func unknownKey(shape *anser.Shape, message []byte) string {
	var want, have any
	if json.Unmarshal(shape.JSON, &want) != nil || json.Unmarshal(message, &have) != nil {
		return ""
	}
	c := comparison{
		protobuf: strings.HasPrefix(shape.Type, "message "), exact: strings.HasPrefix(shape.Type, "table "), others: shape.Others,
	}
	return c.compare("", want, have)
}

// comparison configures the comparison of a message with an example.
type comparison struct {
	protobuf bool
	exact    bool     // keys have their case
	others   []string // keys missing in the example
}

// compare searches have for members that the example want does not have. Where the example ends,
// anything is accepted.
func (c *comparison) compare(path string, want, have any) string {
	switch want := want.(type) {
	case map[string]any:
		members, ok := have.(map[string]any)
		if !ok {
			return ""
		}
		if c.protobuf && len(want) == 0 { // a map may be empty in an example
			return ""
		}
		if element, ok := exampleOfMap(want); ok {
			for _, key := range slices.Sorted(maps.Keys(members)) {
				if s := c.compare(join(path, key), element, members[key]); s != "" {
					return s
				}
			}
			return ""
		}
		return c.members(path, want, members)
	case []any:
		list, ok := have.([]any)
		if !ok {
			return ""
		}
		for i, v := range list {
			var element any
			switch {
			case len(want) == 1: // a list
				element = want[0]
			case i < len(want): // several arguments
				element = want[i]
			}
			if s := c.compare(fmt.Sprintf("%s[%d]", path, i), element, v); s != "" {
				return s
			}
		}
	}
	return ""
}

func (c *comparison) members(path string, want, have map[string]any) string {
	known := slices.Sorted(maps.Keys(want))
	for _, key := range slices.Sorted(maps.Keys(have)) {
		i := slices.IndexFunc(known, func(k string) bool { return c.same(k, key) })
		if i < 0 && slices.ContainsFunc(c.others, func(k string) bool { return c.same(k, key) }) {
			continue
		}
		if i < 0 {
			return c.unknown(join(path, key), key, known)
		}
		if s := c.compare(join(path, key), want[known[i]], have[key]); s != "" {
			return s
		}
	}
	return ""
}

// unknown describes the known keys in place of an unknown one.
func (c *comparison) unknown(path, key string, known []string) string {
	s := fmt.Sprintf("the message has the unknown key %s: ", path)
	known = slices.Concat(known, c.others)
	switch near := didYouMean(key, known); {
	case near != "":
		return s + near
	case len(known) == 0:
		return s + "there are no keys here"
	}
	return s + "the keys are " + strings.Join(known, ", ")
}

// same reports whether the codec treats the keys as equal: encoding/json ignores case, protojson
// also accepts the name in the .proto file, and FlatBuffers takes the name alone.
func (c *comparison) same(known, key string) bool {
	if c.exact {
		return known == key
	}
	if c.protobuf {
		known, key = strings.ReplaceAll(known, "_", ""), strings.ReplaceAll(key, "_", "")
	}
	return strings.EqualFold(known, key)
}

// exampleOfMap distinguishes the example of a map, which has one member with a name chosen by the
// server, from that of a struct.
func exampleOfMap(want map[string]any) (element any, ok bool) {
	if len(want) == 1 {
		for _, key := range []string{"key", "0", "false"} {
			if element, ok = want[key]; ok {
				return element, true
			}
		}
	}
	return nil, false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
