package msgpack_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/codec/msgpack"
)

type word string

type words struct {
	Name  string
	Words []word
	Keys  map[word]struct{ Text string }
	Fixed [2]*string
	Any   any
	Kids  []words
	Data  []byte
	Left  string `msgpack:"-"`
}

// A string may arrive as a bin, which then must be UTF-8 as well: otherwise the value could not be
// encoded again.
func TestStringsInBinAreUTF8(t *testing.T) {
	const good, bad = "\xc4\x02\xc3\xa9", "\xc4\x02\xff\xff"
	c := msgpack.New()
	for text, into := range map[string]func() any{
		"%":                                  func() any { return new(string) },
		"\x91%":                              func() any { return new([]word) },
		"\x81%\x01":                          func() any { return new(map[word]int) },
		"\x81\x01%":                          func() any { return new(map[int8]word) },
		"\x81\xa4Name%":                      func() any { return new(words) },
		"\x81\xa5Words\x92%%":                func() any { return new(words) },
		"\x81\xa4Keys\x81%\x80":              func() any { return new(words) },
		"\x81\xa5Fixed\x92\xa0%":             func() any { return new(words) },
		"\x81\xa3Any%":                       func() any { return &words{Any: new(word)} },
		"\x81\xa4Kids\x91\x81\xa4Name%":      func() any { return new(words) },
		"\x81\xa4Keys\x81\xa1a\x81\xa4Text%": func() any { return new(words) },
	} {
		v := into()
		if err := c.Unmarshal([]byte(strings.ReplaceAll(text, "%", good)), v); err != nil {
			t.Errorf("%q: %v", text, err)
		} else if _, err := c.Append(nil, v); err != nil {
			t.Errorf("%q was taken and cannot be given: %v", text, err)
		}
		if err := c.Unmarshal([]byte(strings.ReplaceAll(text, "%", bad)), into()); err == nil || !strings.Contains(err.Error(), "string is not UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
	// Bytes may be any.
	for text, into := range map[string]any{
		"%": new([]byte), "\x81\xa4Data%": new(words), "\x81\xa3Any%": new(words), "\x91%": new([]any), "\x81%\x01": new(map[[2]byte]int),
		"\x81\xa4Left%": &words{Left: "\xff"}, // the key is unknown
	} {
		if err := c.Unmarshal([]byte(strings.ReplaceAll(text, "%", bad)), into); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
