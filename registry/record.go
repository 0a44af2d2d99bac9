package registry

import (
	"encoding/json"
	"fmt"
)

// MaxRecordBytes is the largest record that Decode accepts. The record of a valid instance is
// smaller.
const MaxRecordBytes = 128 << 10

// Encode returns the record of the instance for registries that store bytes: its JSON form,
// without line breaks. It fails if Validate does.
func Encode(in Instance) ([]byte, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(in)
}

// Decode parses a record written by Encode. It ignores unknown fields, so that a newer version may
// add some; an instance that Validate rejects is an error. It does not keep data.
func Decode(data []byte) (Instance, error) {
	if len(data) > MaxRecordBytes {
		return Instance{}, fmt.Errorf("instance record of %d bytes: at most %d", len(data), MaxRecordBytes)
	}
	var in Instance
	if err := json.Unmarshal(data, &in); err != nil {
		return Instance{}, fmt.Errorf("instance record is not what Anser writes: %w", err)
	}
	if err := in.Validate(); err != nil {
		return Instance{}, fmt.Errorf("instance record: %w", err)
	}
	return in, nil
}
