package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/arena/internal/peer"
)

// harness has what the peers of a language share. Their programs are built from it too.
var harness = map[string][]string{
	"go":   {"arena/workload"},
	"java": {"arena/java", "arena/workload"},
	"cpp":  {"arena/cpp", "arena/workload"},
}

// sum returns a hash over everything that the programs of a folder are built from: its files, the
// harness of its language, its inputs, and the versions of the tools.
func sum(root string, f *peer.Folder, tools []string) (string, error) {
	h := sha256.New()
	roots := []string{f.Path}
	for _, path := range harness[f.LanguageName()] {
		roots = append(roots, filepath.Join(root, filepath.FromSlash(path)))
	}
	for _, pattern := range f.Inputs {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return "", fmt.Errorf("inputs %q: %w", pattern, err)
		}
		roots = append(roots, found...)
	}
	var files []string
	for _, path := range roots {
		found, err := sources(path)
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if err := add(h, root, file); err != nil {
			return "", err
		}
	}
	for _, tool := range tools {
		fmt.Fprintf(h, "tool %q\n", tool)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sources returns the files of a file or folder, except files that are not part of a program:
// hidden ones, and Go tests.
func sources(path string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err) && file == path: // a language without a harness
			return nil
		case err != nil:
			return err
		case file != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case entry.Type().IsRegular() && !strings.HasSuffix(file, "_test.go"):
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

func add(h hash.Hash, root, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	name, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	content := sha256.New()
	if _, err := io.Copy(content, in); err != nil {
		return err
	}
	fmt.Fprintf(h, "file %q %x\n", filepath.ToSlash(name), content.Sum(nil))
	return nil
}
