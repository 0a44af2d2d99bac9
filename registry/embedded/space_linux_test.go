package embedded_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser/registry/embedded"
)

// The database has blocks for all of its size, so that what etcd writes inside of it needs none when the disk is full.
func TestDatabaseHasItsBlocks(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir()}
	start(t, cfg)
	file := filepath.Join(cfg.Dir, "member", "snap", "db")
	var info syscall.Stat_t
	ok := eventually(func() bool {
		if err := syscall.Stat(file, &info); err != nil {
			t.Fatal(err)
		}
		return info.Size > 0 && info.Blocks*512 >= info.Size
	})
	if !ok {
		t.Errorf("%d bytes have %d blocks of 512", info.Size, info.Blocks)
	}
}
