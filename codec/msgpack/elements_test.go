package msgpack_test

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/codec/msgpack"
)

func TestElements(t *testing.T) {
	for name, c := range map[string]struct {
		data  string
		limit int
		want  []string
		keyed bool
		rest  string
	}{
		"empty array": {"\x90", 0, nil, false, ""},
		"array":       {"\x93\x01\xa1a\x92\x02\x03\xc0", 3, []string{"\x01", "\xa1a", "\x92\x02\x03"}, false, "\xc0"},
		"array 16":    {"\xdc\x00\x01\xc4\x02ab", 1, []string{"\xc4\x02ab"}, false, ""},
		"map":         {"\x81\xa1a\x81\x01\x02", 1, []string{"\xa1a", "\x81\x01\x02"}, true, ""},
	} {
		got, keyed, rest, err := msgpack.Elements([]byte(c.data), c.limit)
		if err != nil || keyed != c.keyed || string(rest) != c.rest || len(got) != len(c.want) {
			t.Errorf("%s: %q, %v, %q, %v", name, got, keyed, rest, err)
			continue
		}
		for i, w := range c.want {
			if string(got[i]) != w {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
	for name, data := range map[string]string{
		"nothing": "", "scalar": "\x01", "too many": "\x93\x01\x02\x03", "too many pairs": "\x83\x01\x02\x03\x04\x05\x06", "cut": "\x92\x01", "cut inside": "\x92\x92\x01",
	} {
		if got, _, _, err := msgpack.Elements([]byte(data), 2); err == nil {
			t.Errorf("%s: %q and no error", name, got)
		}
	}
}

// For any input, the parts are exactly the bytes of the input.
func FuzzElements(f *testing.F) {
	f.Add([]byte("\x93\x01\xa1a\x92\x02\x03\xc0"))
	f.Add([]byte("\xdf\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		values, _, rest, err := msgpack.Elements(data, 16)
		if err != nil {
			return
		}
		all := append(bytes.Join(values, nil), rest...)
		if len(values) > 32 || !bytes.HasSuffix(data, all) {
			t.Errorf("% x was cut into % x and % x", data, values, rest)
		}
	})
}
