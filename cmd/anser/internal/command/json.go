package command

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/internal/printable"
)

// jsonFlag adds the flag for machine-readable output.
func jsonFlag(c *cobra.Command, on *bool) {
	c.Flags().BoolVar(on, "json", false, "print JSON")
}

// printJSON writes v as one indented object.
func printJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// printJSONLine writes v in one line.
func printJSONLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

// encodeJSON writes v without what could control a terminal: texts are from other processes.
func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(b.Bytes()))
	return err
}

// indentJSON returns the text with one member per line, and without what could control a terminal;
// text that is not JSON is returned unchanged.
func indentJSON(text []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return string(text)
	}
	return string(printable.JSON(b.Bytes()))
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
