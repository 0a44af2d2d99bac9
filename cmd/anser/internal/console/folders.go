package console

import (
	"maps"
	"slices"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/filetransfer"
	"github.com/anser-rpc/anser/internal/introspect"
)

// folders returns the folders that services seem to serve with package filetransfer, by the names
// and kinds of the methods on admin pages. An instance is asked when one of them is opened.
func (s *snapshot) folders() []model.Folder {
	out := []model.Folder{}
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		for _, folder := range s.services[name].folders() {
			out = append(out, model.Folder{Service: name, Name: folder})
		}
	}
	return out
}

func (v *serviceView) folders() []string {
	names := []string{}
	ops := make(map[string]map[string]bool) // whether it is a stream, by name and method
	for name, m := range v.methods {
		if len(m.served) == 0 {
			continue // only callers name it
		}
		prefix, op := introspect.SplitName(name)
		if ops[prefix] == nil {
			ops[prefix] = make(map[string]bool)
		}
		ops[prefix][op] = m.served[0].Stream
	}
	list, get, put := filetransfer.OpList.String(), filetransfer.OpGet.String(), filetransfer.OpPut.String()
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		of := ops[name]
		_, stat := of[filetransfer.OpStat.String()]
		if of[list] && of[get] && stat || of[put] && len(of) == 1 {
			names = append(names, name)
		}
	}
	return names
}
