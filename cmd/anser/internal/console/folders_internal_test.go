package console

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
)

func TestFolders(t *testing.T) {
	served := func(stream bool) *methodView { return &methodView{served: []collect.Served{{Stream: stream}}} }
	v := &serviceView{methods: map[string]*methodView{
		"File.List": served(true), "File.Get": served(true), "File.Stat": served(false), "File.Remove": served(false),
		"In.Put":    served(true),
		"Shop.List": served(false), "Shop.Get": served(false), "Shop.Stat": served(false), // calls
		"Blob.Put": served(true), "Blob.Size": served(false), // more than a folder that takes files has
		"Seen.List": {}, "Seen.Get": {}, "Seen.Stat": {}, // by callers alone
	}}
	if got := v.folders(); !slices.Equal(got, []string{"File", "In"}) {
		t.Errorf("the folders are %q", got)
	}
	if got := (&serviceView{}).folders(); got == nil || len(got) > 0 {
		t.Errorf("a service without methods has %#v", got)
	}
}
