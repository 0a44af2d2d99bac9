package embedded_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// The database has blocks for its whole size, so writes inside it need none when the disk is full.
func TestDatabaseHasItsBlocks(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir()}
	start(t, cfg)
	file := filepath.Join(cfg.Dir, "member", "snap", "db")
	var info syscall.Stat_t
	regtest.Eventually(t, regtest.Patience, "blocks for all bytes", func() bool {
		if err := syscall.Stat(file, &info); err != nil {
			t.Fatal(err)
		}
		return info.Size > 0 && info.Blocks*512 >= info.Size
	})
}
