package change

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser"
)

// The name of a folder that a terminal or a browser would not show as it is is marked, and no
// request can name the folder: another one may have that name.
func TestHostileFolderNames(t *testing.T) {
	var methods []anser.MethodInfo
	for _, name := range []string{"File", "File\u009b2J", "a\u202eb", "File\u200b", "File?"} {
		for _, op := range []string{".List", ".Get"} {
			m := anser.MethodInfo{Name: name + op, Stream: true}
			m.Request.Type, m.Reply.Type = bytesMessage, bytesMessage
			if op == ".List" {
				m.Request.Type = pathMessage
			}
			methods = append(methods, m)
		}
	}
	want := []folder{{Name: "File", List: true, Get: true}, {Name: "File?", List: true, Get: true}, {Name: "File?2J"}, {Name: "a?b"}}
	if got := foldersOf(methods); !slices.Equal(got, want) {
		t.Errorf("the folders are %+v, want %+v", got, want)
	}
}
