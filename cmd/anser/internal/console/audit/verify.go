package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Summary describes a log whose entries are unchanged.
type Summary struct {
	Entries uint64 `json:"entries"`
	Hash    string `json:"hash"` // of the last entry
	// Vouched is the number of the entry with the hash that Verify was given, 0 without one: no
	// entry up to it is missing.
	Vouched uint64 `json:"vouched"`
}

// chain is the state after the last entry that was read.
type chain struct {
	sequence uint64
	hash     string
	size     int64 // of the complete lines
	rest     int   // bytes of an incomplete last line
}

// Verify checks every entry of a log. It finds a change of entries, not that the last ones are
// missing, nor that all hashes were computed anew: keep the hash of the last entry in another
// place, and pass it as head later. With a head, the log must have the entry with that hash.
func Verify(path, head string) (Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	var vouched uint64
	c, err := verifyEach(f, func(e Entry) {
		if head != "" && e.Hash == head {
			vouched = e.Sequence
		}
	})
	switch {
	case err != nil:
		return Summary{}, err
	case c.rest > 0:
		return Summary{}, fmt.Errorf("line %d is incomplete: the console removes it when it starts", c.sequence+1)
	case head != "" && vouched == 0:
		return Summary{}, errors.New("no entry has the hash that was given: entries were removed, or all hashes were computed anew")
	}
	return Summary{c.sequence, c.hash, vouched}, nil
}

func verify(r io.Reader) (chain, error) { return verifyEach(r, func(Entry) {}) }

func verifyEach(r io.Reader, f func(Entry)) (c chain, err error) {
	counted := &counter{r: r}
	c.rest, err = entries(counted, func(e Entry) error {
		switch {
		case e.Sequence != c.sequence+1:
			return fmt.Errorf("the entry is number %d, want %d: entries are missing, or were moved", e.Sequence, c.sequence+1)
		case e.Before != c.hash:
			return errors.New("the entry before it was changed or removed")
		case e.Hash != e.hash():
			return errors.New("the entry was changed")
		}
		c.sequence, c.hash = e.Sequence, e.Hash
		f(e)
		return nil
	})
	c.size = counted.n - int64(c.rest)
	return c, err
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
