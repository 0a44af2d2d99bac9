// Package respond writes the answers of the console's routes: JSON, and errors in one form.
package respond

import (
	"encoding/json"
	"net/http"
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

// JSON answers with a value. One that cannot be encoded ends the answer with an empty body.
func JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(v) // fails if the client has left
}
