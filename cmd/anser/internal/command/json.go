package command

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
)

// jsonFlag adds the flag for machine-readable output.
func jsonFlag(c *cobra.Command, on *bool) {
	c.Flags().BoolVar(on, "json", false, "print JSON")
}

// printJSON writes v as one indented object.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printJSONLine writes v in one line.
func printJSONLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// indentJSON returns the text with one member per line; text that is not JSON is returned
// unchanged.
func indentJSON(text []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return string(text)
	}
	return b.String()
}

const jsonAdvice = `write for example '{"A": 7}', in single quotes`

// checkJSON returns an error with the position at which the text stops being JSON.
func checkJSON(text []byte) error {
	var v any
	err := json.Unmarshal(text, &v)
	if err == nil {
		return nil
	}
	if at, ok := err.(*json.SyntaxError); ok && at.Offset > 0 && int(at.Offset) <= len(text) {
		from := max(int(at.Offset)-12, 0)
		return usagef("the message is not JSON: %v, after %q: %s", err, text[from:at.Offset], jsonAdvice)
	}
	return usagef("the message is not JSON: %v: %s", err, jsonAdvice)
}
