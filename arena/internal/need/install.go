package need

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Line returns the command that installs packages of Debian.
func Line(packages []string) string {
	return "apt-get install -y --no-install-recommends " + strings.Join(packages, " ")
}

// ErrCannotInstall means that the packages must be installed by hand.
var ErrCannotInstall = errors.New("packages can only be installed as root, on Debian and its kin")

// Install installs packages of Debian. What apt-get says goes to log when it fails.
func Install(ctx context.Context, packages []string, log io.Writer) error {
	if len(packages) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%w: run %s", ErrCannotInstall, Line(packages))
	}
	install := slices.Concat([]string{"install", "-qq", "-y", "--no-install-recommends"}, packages)
	// The lists of a fresh machine are empty or old: they are renewed when the first try fails.
	if _, err := apt(ctx, install); err == nil {
		return nil
	}
	if said, err := apt(ctx, []string{"update", "-qq"}); err != nil {
		log.Write(said)
		return fmt.Errorf("apt-get update: %w", err)
	}
	if said, err := apt(ctx, install); err != nil {
		log.Write(said)
		return fmt.Errorf("%s: %w", Line(packages), err)
	}
	return nil
}

func apt(ctx context.Context, args []string) ([]byte, error) {
	c := exec.CommandContext(ctx, "apt-get", args...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return c.CombinedOutput()
}
