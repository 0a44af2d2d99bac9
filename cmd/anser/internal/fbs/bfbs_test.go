package fbs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// upstream returns a folder of FlatBuffers' module, which has its own schemas.
func upstream(t testing.TB) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/flatbuffers").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// dumper writes buffers as text.
type dumper struct {
	strings.Builder
	skip map[string]bool // fields, with their tables
}

func (d *dumper) table(o *fbs.Object, t flatbuffers.Table, indent string) {
	fields := append([]*fbs.Field(nil), o.Fields...)
	sort.Slice(fields, func(i, j int) bool { return fields[i].Name < fields[j].Name })
	for _, f := range fields {
		off := flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(f.Offset)))
		if f.Deprecated || d.skip[o.Name+"."+f.Name] || off == 0 {
			continue
		}
		at := t.Pos + off
		switch f.Type.Base {
		case fbs.String:
			fmt.Fprintf(d, "%s%s: %q\n", indent, f.Name, t.ByteVector(at))
		case fbs.Obj:
			fmt.Fprintf(d, "%s%s:\n", indent, f.Name)
			d.table(f.Type.Object, flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}, indent+"  ")
		case fbs.Vector:
			first := t.Vector(off)
			for i := range t.VectorLen(off) {
				element := first + flatbuffers.UOffsetT(4*i)
				fmt.Fprintf(d, "%s%s[%d]:", indent, f.Name, i)
				if f.Type.Element == fbs.String {
					fmt.Fprintf(d, " %q\n", t.ByteVector(element))
					continue
				}
				d.WriteByte('\n')
				d.table(f.Type.Object, flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(element)}, indent+"  ")
			}
		default:
			if text := scalar(f, t, at); text != defaultText(f) {
				fmt.Fprintf(d, "%s%s: %s\n", indent, f.Name, text)
			}
		}
	}
}

func defaultText(f *fbs.Field) string {
	if f.Type.Base.Real() {
		return fmt.Sprint(f.Default.Float)
	}
	return fmt.Sprint(f.Default.Int)
}

func scalar(f *fbs.Field, t flatbuffers.Table, at flatbuffers.UOffsetT) string {
	switch f.Type.Base.Size() {
	case 1:
		return fmt.Sprint(t.GetByte(at))
	case 2:
		return fmt.Sprint(t.GetUint16(at))
	case 4:
		return fmt.Sprint(t.GetInt32(at))
	}
	if f.Type.Base.Real() {
		return fmt.Sprint(t.GetFloat64(at))
	}
	return fmt.Sprint(t.GetInt64(at))
}

// contents returns a binary schema as text, without the names of files.
func contents(t *testing.T, reflection *fbs.Object, bfbs []byte) string {
	t.Helper()
	if len(bfbs) < 8 || string(bfbs[4:8]) != "BFBS" {
		t.Fatalf("it begins with %q", bfbs[:min(len(bfbs), 8)])
	}
	d := &dumper{skip: map[string]bool{"Schema.fbs_files": true, "Object.declaration_file": true, "Enum.declaration_file": true, "Service.declaration_file": true}}
	d.table(reflection, flatbuffers.Table{Bytes: bfbs, Pos: flatbuffers.GetUOffsetT(bfbs)}, "")
	return d.String()
}

// The binary schemas are equal to what flatc wrote: for FlatBuffers' own tests, and in testdata,
// where they are made by hand with flatc 25.12.19:
//
//	flatc -b --schema features.fbs && mv features.bfbs features.plain.bfbs
//	flatc -b --schema --bfbs-comments --bfbs-builtins features.fbs
func TestMarshalAsFlatc(t *testing.T) {
	up := upstream(t)
	s, err := new(fbs.Loader).Load(filepath.Join(up, "reflection", "reflection.fbs"))
	if err != nil {
		t.Fatal(err)
	}
	reflection := s.Files[0].Root
	tests := filepath.Join(up, "tests")
	for _, test := range []struct {
		fbs, bfbs string
		options   fbs.Binary
	}{
		{"testdata/features.fbs", "testdata/features.bfbs", fbs.Binary{Comments: true, Builtins: true}},
		{"testdata/features.fbs", "testdata/features.plain.bfbs", fbs.Binary{}},
		{filepath.Join(tests, "monster_test.fbs"), filepath.Join(tests, "monster_test.bfbs"), fbs.Binary{Comments: true, Builtins: true}},
		{filepath.Join(tests, "arrays_test.fbs"), filepath.Join(tests, "arrays_test.bfbs"), fbs.Binary{Comments: true, Builtins: true}},
	} {
		t.Run(test.bfbs, func(t *testing.T) {
			golden, err := os.ReadFile(test.bfbs)
			if err != nil {
				t.Fatal(err)
			}
			l := fbs.Loader{Imports: []string{filepath.Join(tests, "include_test")}}
			s, err := l.Load(test.fbs)
			if err != nil {
				t.Fatal(err)
			}
			file := s.Files[len(s.Files)-1]
			got := test.options.Marshal(file)
			if again := test.options.Marshal(file); !bytes.Equal(again, got) {
				t.Error("the second time it is different")
			}
			a, b := strings.Split(contents(t, reflection, got), "\n"), strings.Split(contents(t, reflection, golden), "\n")
			for i := range a {
				if i >= len(b) || a[i] != b[i] {
					t.Fatalf("line %d:\n%s\nwant\n%s", i, strings.Join(a[max(0, i-12):min(len(a), i+4)], "\n"), strings.Join(b[max(0, i-12):min(len(b), i+4)], "\n"))
				}
			}
			if len(a) != len(b) || len(a) < 50 {
				t.Errorf("there are %d lines, want %d", len(a), len(b))
			}
		})
	}
}
