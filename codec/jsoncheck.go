package codec

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

const (
	// MaxJSONDepth is the maximum nesting depth of arrays and objects.
	MaxJSONDepth = 64
	// maxJSONNumber is the maximum length of a number. 1e308 written out is shorter; the time to
	// convert a number grows faster than its length.
	maxJSONNumber = 512
	// fewKeys is the number of keys up to which comparing all pairs is faster than hashing.
	fewKeys = 8
)

// CheckJSON rejects input that encoding/json accepts but a server should not: an object with a
// duplicate key, of which different parsers use different values; text that is not UTF-8 and
// escapes of half a surrogate pair, which become U+FFFD; more than MaxJSONDepth levels; and
// numbers of more than 512 characters. Syntax errors are left to the decoder, so accepted data
// need not be JSON. Time and memory are proportional to the length of data.
func CheckJSON(data []byte) error {
	if !utf8text.Valid(data) {
		return errors.New("text is not UTF-8")
	}
	c := jsonChecker{data: data}
	return c.check()
}

// jsonKey is the position of a key, in data or, past its end, in plain.
type jsonKey struct{ start, end int }

type jsonChecker struct {
	data  []byte
	plain []byte // keys that had escapes, unescaped
	at    int
	depth int
	first [MaxJSONDepth + 1]int // per level, the index of its first key in the keys of the open objects
	seed  maphash.Seed          // created when it is needed
	table []int32               // the hashed keys of one object, reused for the next
}

func (c *jsonChecker) check() error {
	// The keys of the open objects, the innermost last. They are passed as an argument, not stored
	// in a field of c, because a slice stored through a pointer escapes to the heap.
	var room [32]jsonKey
	keys, err := room[:0], error(nil)
	for c.at < len(c.data) && err == nil {
		switch b := c.data[c.at]; {
		case b == '"':
			keys, err = c.text(keys)
		case b == '{' || b == '[':
			err = c.open(len(keys))
		case b == '}' || b == ']':
			keys, err = c.close(keys)
		case b == '-' || '0' <= b && b <= '9':
			err = c.number()
		default: // white space, punctuation and literals
			c.at++
		}
	}
	return err
}

func (c *jsonChecker) open(keys int) error {
	if c.depth == MaxJSONDepth {
		return fmt.Errorf("JSON nested deeper than %d levels", MaxJSONDepth)
	}
	c.depth++
	c.first[c.depth] = keys
	c.at++
	return nil
}

func (c *jsonChecker) close(keys []jsonKey) ([]jsonKey, error) {
	if c.depth == 0 {
		return nil, fmt.Errorf("JSON has an unmatched closing bracket at byte %d", c.at)
	}
	first := c.first[c.depth]
	c.depth--
	c.at++
	return keys[:first], c.distinct(keys[first:])
}

// text skips a string, and adds it to keys if a colon follows.
func (c *jsonChecker) text(keys []jsonKey) ([]jsonKey, error) {
	c.at++
	start, escaped := c.at, false
	for c.at < len(c.data) && c.data[c.at] != '"' {
		if c.data[c.at] != '\\' {
			c.at++
			continue
		}
		escaped = true
		n, err := escapeLen(c.data[c.at:])
		if err != nil {
			return nil, fmt.Errorf("%w at byte %d", err, c.at)
		}
		c.at += n
	}
	if c.at >= len(c.data) {
		return nil, errors.New("JSON ends inside a string")
	}
	k := jsonKey{start, c.at}
	c.at++
	if !c.colonFollows() {
		return keys, nil
	}
	if escaped {
		n := len(c.data) + len(c.plain)
		c.plain = appendPlain(c.plain, c.key(k))
		k = jsonKey{n, len(c.data) + len(c.plain)}
	}
	return append(keys, k), nil
}

func (c *jsonChecker) colonFollows() bool {
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case ' ', '\t', '\r', '\n':
			c.at++
		case ':':
			return true
		default:
			return false
		}
	}
	return false
}

func (c *jsonChecker) number() error {
	start := c.at
	for c.at < len(c.data) && inNumber(c.data[c.at]) {
		c.at++
	}
	if n := c.at - start; n > maxJSONNumber {
		return fmt.Errorf("JSON number of %d characters: the limit is %d", n, maxJSONNumber)
	}
	return nil
}

func inNumber(b byte) bool {
	return '0' <= b && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'e' || b == 'E'
}

func (c *jsonChecker) key(k jsonKey) []byte {
	if n := len(c.data); k.start >= n {
		return c.plain[k.start-n : k.end-n]
	}
	return c.data[k.start:k.end]
}

// distinct fails if an object has duplicate keys.
func (c *jsonChecker) distinct(keys []jsonKey) error {
	if len(keys) > fewKeys {
		return c.distinctByHash(keys)
	}
	for i, k := range keys {
		for _, other := range keys[:i] {
			if bytes.Equal(c.key(k), c.key(other)) {
				return c.errTwice(k)
			}
		}
	}
	return nil
}

// distinctByHash uses a hash table with a seed unknown to the peer.
func (c *jsonChecker) distinctByHash(keys []jsonKey) error {
	if c.seed == (maphash.Seed{}) {
		c.seed = maphash.MakeSeed()
	}
	size := 16
	for size < 2*len(keys) {
		size *= 2
	}
	if len(c.table) < size {
		c.table = make([]int32, size)
	}
	table := c.table[:size]
	clear(table)
	for i, k := range keys {
		slot := maphash.Bytes(c.seed, c.key(k)) & uint64(size-1)
		for table[slot] != 0 {
			if bytes.Equal(c.key(k), c.key(keys[table[slot]-1])) {
				return c.errTwice(k)
			}
			slot = (slot + 1) & uint64(size-1)
		}
		table[slot] = int32(i + 1)
	}
	return nil
}

func (c *jsonChecker) errTwice(k jsonKey) error {
	return fmt.Errorf("JSON object has the key %.64q twice", string(c.key(k)))
}
