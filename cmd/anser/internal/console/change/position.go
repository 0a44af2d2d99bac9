package change

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// find returns the place in a text in YAML or JSON that has the path of a mistake, such as
// rules.split[0].percent: the value, or the last part of the path that is there. It is 0, 0 if the
// text cannot be read.
func find(text, path string) (line, column int) {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
		return 0, 0
	}
	at := doc.Content[0]
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(at, part)
		if next == nil {
			break
		}
		at = next
	}
	return at.Line, at.Column
}

// child returns a member of an object or list, or nil.
func child(at *yaml.Node, part string) *yaml.Node {
	switch at.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == part {
				return at.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.Content) {
			return at.Content[i]
		}
	}
	return nil
}
