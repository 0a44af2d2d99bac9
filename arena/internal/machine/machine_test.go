package machine_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/machine"
	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
)

func TestDescribe(t *testing.T) {
	p := &peer.Peer{Folder: &peer.Folder{Needs: []string{"go", "no-such-program"}}}
	m := machine.Describe(new(need.Checker), []*peer.Peer{p})
	if m.Cores < 1 || m.MemoryMiB < 1 || m.OS == "" || m.Kernel == "" || len(m.Tools) != 1 || m.Tools["go"] == "" {
		t.Errorf("%+v", m)
	}
}

// Children may open as many files as the system allows at all.
func TestRaiseFiles(t *testing.T) {
	if err := machine.RaiseFiles(); err != nil {
		t.Fatal(err)
	}
	limit := func(kind string) string {
		out, err := exec.Command("sh", "-c", "ulimit "+kind).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if soft, hard := limit("-Sn"), limit("-Hn"); soft != hard {
		t.Errorf("a child may open %s files, and %s are allowed", soft, hard)
	}
}
