package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
)

// gencode is what gencode generates.
type gencode interface {
	Size() uint64
	Marshal(buf []byte) ([]byte, error)
	Unmarshal(buf []byte) (uint64, error)
}

// appendGencode has m write behind dst. Marshal writes to the beginning of the slice that it is given if
// that has room for Size bytes.
func (c Binary) appendGencode(dst []byte, m gencode) ([]byte, error) {
	// What this side would not read, it does not write.
	if err := c.checkGencode(reflect.TypeOf(m)); err != nil {
		return dst, err
	}
	n := m.Size()
	if n > maxGencode {
		return dst, fmt.Errorf("its method Size says %d bytes: was the value changed meanwhile?", n)
	}
	start := len(dst)
	dst = slices.Grow(dst, int(n))
	b, err := m.Marshal(dst[start : start+int(n)])
	if err != nil {
		return dst[:start], err
	}
	if len(b) > 0 && len(b) <= int(n) && &b[0] == &dst[:start+1][start] {
		return dst[:start+len(b)], nil
	}
	return append(dst[:start], b...), nil
}

// maxGencode is more than a message may have.
const maxGencode = 1 << 31

func (c Binary) unmarshalGencode(data []byte, m gencode) error {
	if err := c.checkGencode(reflect.TypeOf(m)); err != nil {
		return err
	}
	// Its code cuts texts out of the slice by what is declared, up to the capacity: the buffer may have more behind data.
	n, err := m.Unmarshal(slices.Clip(data))
	if err == nil && n != uint64(len(data)) {
		err = fmt.Errorf("it took %d bytes of %d", n, len(data))
	}
	return err
}

// gencodeTypes has what was found out about gencode's types: a gencodeVerdict by reflect.Type.
var gencodeTypes sync.Map

type gencodeVerdict struct{ err error }

var (
	errGencodeSlice = errors.New("it has a slice, for which gencode's code allocates as much as a peer declares: use another codec, or codec.Binary{TrustPeers: true} where all peers are yours")
	errGencodeLoop  = errors.New("it contains itself, which gencode's code follows as deep as a peer's data goes: use another codec, or codec.Binary{TrustPeers: true} where all peers are yours")
)

// checkGencode returns why a peer's bytes must not be decoded into t with gencode's code. What that does
// with them where there are neither slices nor recursion ends with the data: it indexes what is not
// there, and panics, which Unmarshal catches.
func (c Binary) checkGencode(t reflect.Type) error {
	if c.TrustPeers {
		return nil
	}
	known, ok := gencodeTypes.Load(t)
	if !ok {
		known, _ = gencodeTypes.LoadOrStore(t, gencodeVerdict{boundedGencode(t, nil)})
	}
	return known.(gencodeVerdict).err
}

// boundedGencode walks the types inside of outer.
func boundedGencode(t reflect.Type, outer []reflect.Type) error {
	if slices.Contains(outer, t) {
		return errGencodeLoop
	}
	if t == reflect.TypeFor[time.Time]() {
		return nil
	}
	outer = append(outer, t)
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		return errGencodeSlice
	case reflect.Interface:
		// A union: its types are known to the generated code only, and may have slices.
		return errGencodeSlice
	case reflect.Pointer, reflect.Array:
		return boundedGencode(t.Elem(), outer)
	case reflect.Struct:
		for f := range t.Fields() {
			if err := boundedGencode(f.Type, outer); err != nil {
				return err
			}
		}
	}
	return nil
}
