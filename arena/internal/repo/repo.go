// Package repo finds the repository that the arena belongs to.
package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mark is the file by which the repository is known.
var mark = filepath.Join("arena", "CONTRACT.md")

// Root returns the folder of the repository that holds dir: the first from dir upwards with an
// arena in it.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		// Above the repository there may be anything: a file of that name, a folder that is not
		// ours.
		if _, err := os.Stat(filepath.Join(at, mark)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no %s in %s or above it: run this inside a clone of Anser", mark, dir)
		}
	}
}

// Commit returns the short name of the commit that is checked out, with + and a hash of the
// changes when files that git knows differ from it, so that two states of the files never have the
// same name; "unknown" where git cannot tell. The result of a run, which may be committed too,
// makes no difference.
func Commit(ctx context.Context, root, result string) string {
	name, err := git(ctx, root, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	diff := []string{"diff", "--binary", "HEAD", "--", "."}
	if path, err := filepath.Abs(result); err == nil && result != "" {
		if inside, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(inside) {
			diff = append(diff, ":(exclude,literal)"+filepath.ToSlash(inside))
		}
	}
	changed, err := git(ctx, root, diff...)
	switch {
	case err != nil:
		return "unknown"
	case changed != "":
		sum := sha256.Sum256([]byte(changed))
		return name + "+" + hex.EncodeToString(sum[:4])
	}
	return name
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
