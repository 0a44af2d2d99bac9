package msgpack

import (
	"errors"
	"fmt"
)

// Elements cuts the array or map at the beginning of data into its values, which alias data, and returns
// what follows it. Of a map every key is followed by its value, and keyed is true. data must be valid, as
// what Unmarshal has been given is; there may be at most limit values or, in a map, pairs of them.
func Elements(data []byte, limit int) (values [][]byte, keyed bool, rest []byte, err error) {
	h, data, err := readHead(data)
	if err != nil {
		return nil, false, nil, err
	}
	keyed = h.kind == object
	most := limit
	if keyed {
		most *= 2
	}
	switch {
	case h.values < 0:
		return nil, false, nil, errors.New("the MessagePack value is no array and no map")
	case h.values > most:
		return nil, false, nil, fmt.Errorf("there are more than %d values", limit)
	}
	values = make([][]byte, h.values)
	for i := range values {
		if rest, err = skip(data); err != nil {
			return nil, false, nil, err
		}
		n := len(data) - len(rest)
		values[i], data = data[:n:n], rest
	}
	return values, keyed, data, nil
}

// skip returns what follows the value at the beginning of data.
func skip(data []byte) ([]byte, error) {
	for due := uint64(1); due > 0; due-- {
		h, rest, err := readHead(data)
		if err != nil {
			return nil, err
		}
		due += uint64(max(h.values, 0))
		data = rest[h.size:]
	}
	return data, nil
}
