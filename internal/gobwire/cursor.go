package gobwire

import (
	"errors"
	"math"
)

// cursor reads one message.
type cursor struct {
	data []byte
	pos  int
}

var errShort = errors.New("a gob message ends in the middle of a value")

var errNumber = errors.New("a number in a gob message is broken")

func (c *cursor) left() int { return len(c.data) - c.pos }

// uint decodes an unsigned number: itself if it is below 128, otherwise the negated count of its
// bytes followed by these, in big-endian order.
func (c *cursor) uint() (uint64, error) {
	if c.left() == 0 {
		return 0, errShort
	}
	b := c.data[c.pos]
	c.pos++
	if b <= 0x7f {
		return uint64(b), nil
	}
	n := -int(int8(b))
	if n > 8 {
		return 0, errNumber
	}
	if c.left() < n {
		return 0, errShort
	}
	var x uint64
	for _, b := range c.data[c.pos : c.pos+n] {
		x = x<<8 | uint64(b)
	}
	c.pos += n
	return x, nil
}

// int decodes a signed number, whose sign is the lowest bit.
func (c *cursor) int() (int64, error) {
	u, err := c.uint()
	if err != nil {
		return 0, err
	}
	i := int64(u >> 1)
	if u&1 != 0 {
		i = ^i
	}
	return i, nil
}

// typeID decodes the ID of a type: negative before its definition. Gob's own IDs have 32 bits; a
// larger one would be another type there than here.
func (c *cursor) typeID() (int64, error) {
	id, err := c.int()
	if err != nil {
		return 0, err
	}
	if id < -math.MaxInt32 || id > math.MaxInt32 {
		return 0, errNumber
	}
	return id, nil
}

// bytes decodes a count and returns that number of bytes, which alias the message.
func (c *cursor) bytes() ([]byte, error) {
	n, err := c.uint()
	if err != nil {
		return nil, err
	}
	if n > uint64(c.left()) {
		return nil, errShort
	}
	b := c.data[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b, nil
}

func (c *cursor) skipBytes() error {
	_, err := c.bytes()
	return err
}

// appendUint appends x in gob's encoding.
func appendUint(b []byte, x uint64) []byte {
	if x <= 0x7f {
		return append(b, byte(x))
	}
	n := 8
	for x>>(8*(n-1)) == 0 {
		n--
	}
	b = append(b, byte(-n))
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(x>>(8*i)))
	}
	return b
}

// appendInt appends x in gob's encoding.
func appendInt(b []byte, x int64) []byte {
	if x < 0 {
		return appendUint(b, uint64(^x<<1)|1)
	}
	return appendUint(b, uint64(x<<1))
}
