package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// rulesSections show the text of the rules that clients follow, a row a rule.
func rulesSections(d *Document) (list []section) {
	for i := range d.Clients {
		c := &d.Clients[i]
		if c.Rules == nil || len(c.Rules.Text) == 0 {
			continue
		}
		s := section{
			Title: fmt.Sprintf("Rules in force for %s, version %d", c.Target, c.Rules.Version), Empty: "The document has no rules.",
			Columns: columns("Rule", "Name", "Text"),
		}
		var kinds map[string]json.RawMessage
		json.Unmarshal(c.Rules.Text, &kinds) // what is not an object has no rows
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			var rules []json.RawMessage
			if json.Unmarshal(kinds[kind], &rules) != nil {
				continue
			}
			for j, rule := range rules {
				s.Rows = append(s.Rows, ruleRow(fmt.Sprintf("%s[%d]", kind, j), rule))
			}
		}
		list = append(list, s)
	}
	return list
}

func ruleRow(place string, rule json.RawMessage) []cell {
	var named struct{ Name string }
	json.Unmarshal(rule, &named)
	var text bytes.Buffer
	if json.Compact(&text, rule) != nil {
		text.Reset()
	}
	return []cell{plain(place), plain(named.Name), plain(text.String())}
}
