package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser"
)

// Override is a value that the traffic rules in force set in place of an option of a client, for
// some of its calls. Of several rules that apply to a call, the first one counts.
type Override struct {
	// Option is the name of the option, such as "Timeout", or of a limit that only rules set:
	// "rate" and "concurrency".
	Option string `json:"option"`
	Value  string `json:"value"`
	// Methods are the patterns of the methods, and When what else a call must match, for people.
	Methods string `json:"methods"`
	When    string `json:"when,omitempty"`
	By      string `json:"by"` // the rule, such as "rules of version 3, methods[0] late"
}

// methodRule is a rule about methods, as package route has it in JSON.
type methodRule struct {
	Name string `json:"name"`
	When struct {
		Methods  json.RawMessage `json:"methods"`
		Metadata json.RawMessage `json:"metadata"`
		Caller   json.RawMessage `json:"caller"`
	} `json:"when"`
	Timeout  string `json:"timeout"`
	Attempts int    `json:"attempts"`
	Mode     string `json:"mode"`
	Rate     *struct {
		PerSecond float64 `json:"per_second"`
		Burst     int     `json:"burst"`
	} `json:"rate"`
	Concurrency int `json:"concurrency"`
}

// overridesOf returns what the rules in force set in place of options.
func overridesOf(r *anser.RulesStatus) (list []Override) {
	if r == nil || r.Text == "" {
		return nil
	}
	var rules struct {
		Methods []methodRule `json:"methods"`
	}
	if json.Unmarshal([]byte(r.Text), &rules) != nil {
		return nil // of another router than that of package route
	}
	for i := range rules.Methods {
		m := &rules.Methods[i]
		by := strings.TrimRight(fmt.Sprintf("rules of version %d, methods[%d] %s", r.Version, i, m.Name), " ")
		for _, v := range m.values() {
			list = append(list, Override{Option: v.Name, Value: v.Value, Methods: cmp.Or(patterns(m.When.Methods), "*"), When: m.when(), By: by})
		}
	}
	return list
}

// values returns the options that the rule sets.
func (m *methodRule) values() (list []OptionValue) {
	add := func(name, value string, set bool) {
		if set {
			list = append(list, OptionValue{Name: name, Value: value})
		}
	}
	add("Timeout", m.Timeout, m.Timeout != "" && m.Timeout != "0s")
	add("Attempts", fmt.Sprint(m.Attempts), m.Attempts > 0)
	add("WithFailMode", m.Mode, m.Mode != "")
	if r := m.Rate; r != nil {
		burst := ""
		if r.Burst > 0 {
			burst = fmt.Sprintf(", %d at once", r.Burst)
		}
		add("rate", fmt.Sprintf("%g per second%s", r.PerSecond, burst), true)
	}
	add("concurrency", fmt.Sprint(m.Concurrency), m.Concurrency > 0)
	return list
}

// when returns what a call must match besides its method.
func (m *methodRule) when() string {
	var parts []string
	if len(m.When.Metadata) > 0 {
		parts = append(parts, "metadata "+string(m.When.Metadata))
	}
	if len(m.When.Caller) > 0 {
		parts = append(parts, "caller "+string(m.When.Caller))
	}
	return strings.Join(parts, ", ")
}

// patterns formats a pattern, or a list of them.
func patterns(text json.RawMessage) string {
	var one string
	if json.Unmarshal(text, &one) == nil {
		return one
	}
	var list []string
	json.Unmarshal(text, &list)
	return strings.Join(list, ", ")
}

// overrideRows show what rules set, in the table of the options of a client.
func overrideRows(c *Client) (rows [][]cell) {
	for i := range c.Overrides {
		o := &c.Overrides[i]
		name, own := o.Option+", a limit of the rules", "none"
		for _, v := range c.Options {
			if v.Name == o.Option {
				name, own = "anser."+o.Option, v.Value
			}
		}
		name += ", for calls of " + o.Methods
		if o.When != "" {
			name += " with " + o.When
		}
		rows = append(rows, []cell{{Text: name, Key: fmt.Sprint(i, " ", name)}, plain(o.Value), plain(o.By), dim(own + ", of the client")})
	}
	return rows
}
