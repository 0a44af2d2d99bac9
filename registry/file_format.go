package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// fileRecord is one line of the file.
type fileRecord struct {
	Instance
	// Owner is the registry that announced the instance; empty if it was written by hand.
	Owner string `json:"owner,omitempty"`
}

// fileError is an error in the content of a file.
type fileError struct {
	path string
	line int
	err  error
}

func (e *fileError) Error() string {
	return fmt.Sprintf("registry file %s, line %d: %v", e.path, e.line, e.err)
}

func (e *fileError) Unwrap() error { return e.err }

// parseFile reads a JSON list of instance records, written by hand or by formatFile. It is
// stricter than Decode, since a person may mistype the name of a field.
func parseFile(path string, data []byte) ([]fileRecord, error) {
	fail := func(offset int64, err error) ([]fileRecord, error) {
		return nil, &fileError{path, lineAt(data, offset), err}
	}
	// Parse the whole text first: only this gives the exact offset of a syntax error.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return fail(syntaxOffset(err, data), describe(err))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return fail(dec.InputOffset(), errors.New(wantList))
	}
	var records []fileRecord
	firstLine := make(map[[2]string]int) // of service and key
	for dec.More() {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		start := dec.InputOffset() - int64(len(raw))
		if err != nil {
			return fail(start, describe(err))
		}
		r, err := parseFileRecord(raw)
		if err != nil {
			return fail(start, err)
		}
		id := [2]string{r.Service, r.Key()}
		if line, twice := firstLine[id]; twice {
			return fail(start, fmt.Errorf("instance %q of service %q is already on line %d: take one out, or give it another id", r.Key(), r.Service, line))
		}
		firstLine[id] = lineAt(data, start)
		records = append(records, r)
	}
	return records, nil
}

const wantList = `want a list of instances: [{"service":"arith","address":"host:port"}], or [] for none`

func parseFileRecord(raw []byte) (fileRecord, error) {
	var r fileRecord
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, describe(err)
	}
	return r, r.Validate()
}

// describe turns the messages of encoding/json into advice for the author of the file.
func describe(err error) error {
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case text == "unexpected end of JSON input":
		return errors.New("the text ends in the middle: " + wantList)
	case strings.HasPrefix(text, "unknown field"):
		return fmt.Errorf("%s: the fields are id, service, address, group, version, zone, weight, state, latitude, longitude and tags", text)
	}
	return errors.New(text)
}

// syntaxOffset returns the offset of the error in data, which is its end unless err says
// otherwise.
func syntaxOffset(err error, data []byte) int64 {
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return syntax.Offset
	}
	return int64(len(data))
}

func lineAt(data []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// formatFile writes one record per line, so that people and diff see what changed.
func formatFile(records []fileRecord) ([]byte, error) {
	if len(records) == 0 {
		return []byte("[]\n"), nil
	}
	lines := make([][]byte, len(records))
	for i, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("instance %q: %w", r.Key(), err)
		}
		lines[i] = line
	}
	return slices.Concat([]byte("[\n"), bytes.Join(lines, []byte(",\n")), []byte("\n]\n")), nil
}
