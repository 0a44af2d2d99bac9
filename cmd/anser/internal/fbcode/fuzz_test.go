package fbcode_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// words are names that could be taken twice in Go, or mean something else.
var words = strings.Fields(`a A b B aT AT a_b aB type table init pack un_pack builder math bytes flatbuffers string_ x x_length xLength
	x_bytes x_by_key X Start AStart AddX Type Names own_codec obj rcv o j t n v _x x_ buf key len error nil true codec fbcodec mutate_x EnumNamesA
	FinishABuffer GetRootAsA ACreate CreateA KeyCompare lookup_by_key func unpack_to marshal_json strconv file_a_schema`)

// sketch makes a schema of bytes.
type sketch struct {
	strings.Builder
	data  []byte
	types []string
}

func (s *sketch) pick(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

func (s *sketch) word() string { return words[s.pick(len(words))] }

func (s *sketch) definition() {
	name := s.word()
	switch s.pick(4) {
	case 0:
		fmt.Fprintf(s, "enum %s:%s { %s, %s }\n", name, []string{"byte", "ulong"}[s.pick(2)], s.word(), s.word())
	case 1:
		fmt.Fprintf(s, "union %s { %s, %s:%s }\n", name, s.typeName(), s.word(), s.typeName())
	case 2:
		s.fields("struct", name, false)
	default:
		s.fields("table", name, true)
	}
	s.types = append(s.types, name)
}

func (s *sketch) typeName() string {
	if i := s.pick(len(s.types) + 1); i < len(s.types) {
		return s.types[i]
	}
	return []string{"int", "bool", "double", "ubyte", "string", "ulong"}[s.pick(6)]
}

func (s *sketch) fields(kind, name string, table bool) {
	fmt.Fprintf(s, "%s %s {", kind, name)
	for range 1 + s.pick(5) {
		of, more := s.typeName(), ""
		if table {
			if s.pick(4) == 0 {
				of = "[" + of + "]"
			}
			more = []string{"", "", "", " = null", " (key)", " (required)", " (deprecated)", " = nan", " = true", " = 0"}[s.pick(10)]
		}
		fmt.Fprintf(s, " %s:%s%s;", s.word(), of, more)
	}
	s.WriteString(" }\n")
}

// FuzzMessages asserts that the code of a schema without mistakes compiles, and that every mistake
// has its place.
func FuzzMessages(f *testing.F) {
	for i := range 20 {
		f.Add([]byte(strings.Repeat(string(rune('a'+i))+"q7\x03Zk", 20)))
	}
	files := token.NewFileSet()
	packages := importer.ForCompiler(files, "source", nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &sketch{data: data}
		for range 1 + in.pick(6) {
			in.definition()
		}
		s, err := fbs.Parse("a.fbs", []byte(in.String()))
		if err != nil {
			return
		}
		code, err := messages(s, false)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "a.fbs:") || strings.Contains(line, "the generated code is wrong") {
					t.Fatalf("%s: %s", in, line)
				}
			}
			return
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, "a.go", code, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := types.Config{Importer: packages}
		if _, err := c.Check("a", files, []*ast.File{parsed}, nil); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
	})
}
