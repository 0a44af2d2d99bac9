package servers_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/internal/servers"
)

// recorder is a test that records its failure, and stops there.
type recorder struct {
	testing.TB
	why []any
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.why = args
	r.TB.SkipNow()
}

// A server that ends instead of serving is reported at once, with its output, not after the
// timeout of a slow one.
func TestServerThatEnds(t *testing.T) {
	r := &recorder{}
	t.Run("start", func(t *testing.T) {
		r.TB = t
		p := new(servers.Process)
		t.Cleanup(p.Stop)
		cmd := exec.Command("sh", "-c", "echo no such option >&2; exit 1")
		cmd.Dir = t.TempDir()
		p.Start(r, cmd, func() error { return errors.New("nobody listens") })
	})
	if len(r.why) != 3 || !strings.Contains(r.why[1].(error).Error(), "it has ended: nobody listens") || string(r.why[2].([]byte)) != "no such option\n" {
		t.Errorf("the reason is %q", r.why)
	}
}

// A server may be killed and restarted, and its log contains both runs.
func TestStartAgain(t *testing.T) {
	p, dir := new(servers.Process), t.TempDir()
	t.Cleanup(p.Stop)
	for life := range 2 {
		cmd := exec.Command("sh", "-c", "echo here; exec sleep 600")
		cmd.Dir = dir
		p.Start(t, cmd, func() error {
			text, err := os.ReadFile(dir + "/log")
			if err == nil && strings.Count(string(text), "here") != life+1 {
				return errors.New("it has not said that it is here")
			}
			return err
		})
		p.Stop()
		p.Stop() // nothing to do
	}
}
