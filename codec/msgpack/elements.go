package msgpack

import (
	"errors"
	"fmt"

	"github.com/anser-rpc/anser/codec/internal/mpscan"
)

// Elements splits the array or map at the beginning of data into its values, which alias data, and
// returns the rest. In a map every key is followed by its value, and keyed is true. data must be
// valid, like the input of Unmarshal; there may be at most limit values or, in a map, limit pairs.
func Elements(data []byte, limit int) (values [][]byte, keyed bool, rest []byte, err error) {
	h, data, err := mpscan.ReadHead(data)
	if err != nil {
		return nil, false, nil, err
	}
	keyed = h.IsMap()
	most := limit
	if keyed {
		most *= 2
	}
	switch {
	case h.Values < 0:
		return nil, false, nil, errors.New("the MessagePack value is neither an array nor a map")
	case h.Values > most:
		return nil, false, nil, fmt.Errorf("there are more than %d values", limit)
	}
	values = make([][]byte, h.Values)
	for i := range values {
		if rest, err = skip(data); err != nil {
			return nil, false, nil, err
		}
		n := len(data) - len(rest)
		values[i], data = data[:n:n], rest
	}
	return values, keyed, data, nil
}

// skip returns the rest after the value at the beginning of data.
func skip(data []byte) ([]byte, error) {
	for due := uint64(1); due > 0; due-- {
		h, rest, err := mpscan.ReadHead(data)
		if err != nil {
			return nil, err
		}
		due += uint64(max(h.Values, 0))
		data = rest[h.Size:]
	}
	return data, nil
}
