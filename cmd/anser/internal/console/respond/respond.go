// Package respond writes the answers of the console's routes: JSON, and errors in one form.
package respond

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/anser-rpc/anser/internal/printable"
)

// Error is why a request has no answer. As JSON it is the body of an answer with its status.
type Error struct {
	Status  int    `json:"-"`
	Text    string `json:"error"`
	Advice  string `json:"advice,omitempty"`
	Current any    `json:"current,omitempty"` // what another user has written
}

// Problem returns an error with a status of 400 or above.
func Problem(status int, text, advice string) *Error {
	return &Error{Status: status, Text: text, Advice: advice}
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Write answers with the error.
func (e *Error) Write(w http.ResponseWriter) { JSON(w, e.Status, e) }

// Fail answers with an error.
func Fail(w http.ResponseWriter, status int, text, advice string) {
	Problem(status, text, advice).Write(w)
}

// JSON answers with a value, or says that it cannot be encoded: a service may have sent a reply
// that is not JSON. What a terminal does not show as it is, such as codes that control it, is
// escaped.
func JSON(w http.ResponseWriter, status int, v any) {
	data, err := encode(v)
	if err != nil {
		status = http.StatusInternalServerError
		data, _ = encode(Problem(status, "the answer cannot be encoded: "+err.Error(), "look at what the service sends, for example with \"anser call\""))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) // fails if the client has left
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return printable.JSON(b.Bytes()), err
}
