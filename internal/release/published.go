package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// unreleased are the folders whose modules are only for the repository itself.
var unreleased = []string{"arena", "codec/codectest", "e2e", "examples", "internal"}

// published is a released module.
type published struct {
	path     string
	folder   string // in the repository, with slashes; "." for the root
	file     *modfile.File
	name     string       // of go.mod, in the file system
	requires []*published // directly or not

	sum, modSum string // as in go.sum; known when the module is sealed
}

func (m *published) tag(version string) string { return path.Join(m.folder, version) }

// load returns the released modules of a checkout, each after the ones it requires.
func load(root, version string) ([]*published, error) {
	files, err := git(root, "ls-files", "*go.mod")
	if err != nil {
		return nil, err
	}
	byPath := make(map[string]*published)
	for name := range strings.FieldsSeq(files) {
		folder := path.Dir(name)
		if !released(folder) {
			continue
		}
		m := &published{folder: folder, name: filepath.Join(root, filepath.FromSlash(name))}
		text, err := os.ReadFile(m.name)
		if err != nil {
			return nil, err
		}
		if m.file, err = modfile.Parse(name, text, nil); err != nil {
			return nil, err
		}
		m.path = m.file.Module.Mod.Path
		byPath[m.path] = m
	}
	var sorted []*published
	var visit func(m *published) error
	visit = func(m *published) error {
		if slices.Contains(sorted, m) {
			return nil
		}
		for _, r := range m.file.Require {
			other := byPath[r.Mod.Path]
			if other == nil {
				continue
			}
			if err := visit(other); err != nil {
				return err
			}
			m.requires = append(m.requires, other)
		}
		for _, r := range m.file.Replace {
			if byPath[r.Old.Path] == nil {
				return fmt.Errorf("%s replaces %s, which is not released with it: %s cannot be installed", m.path, r.Old.Path, version)
			}
		}
		sorted = append(sorted, m)
		return nil
	}
	paths := make([]string, 0, len(byPath))
	for p := range byPath {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		if err := visit(byPath[p]); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

func released(folder string) bool {
	return !strings.Contains(folder+"/", "/testdata/") && !slices.ContainsFunc(unreleased, func(u string) bool {
		return strings.HasPrefix(folder+"/", u+"/")
	})
}

// requirePublished makes go.mod require the other modules in the version instead of replacing
// them.
func (m *published) requirePublished(modules []*published, version string) error {
	for _, other := range modules {
		if err := m.file.DropReplace(other.path, ""); err != nil {
			return err
		}
		if slices.Contains(m.requires, other) {
			if err := m.file.AddRequire(other.path, version); err != nil {
				return err
			}
		}
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(m.name, text, 0o644)
}

// seal completes go.sum with the modules that m requires, which are already sealed, and computes
// the checksums of m. With a proxy it also writes m there.
func (m *published) seal(clone string, o options) error {
	if err := m.sumRequired(o.version); err != nil {
		return err
	}
	if err := commit(clone, "release "+o.version, "--amend", "--allow-empty"); err != nil {
		return err
	}
	folder := m.folder
	if folder == "." {
		folder = ""
	}
	// Like the go command does it for other users, from the commit.
	var archive bytes.Buffer
	if err := zip.CreateFromVCS(&archive, o.versionOf(m), clone, "HEAD", folder); err != nil {
		return err
	}
	name := filepath.Join(clone, ".git", "module.zip")
	if err := os.WriteFile(name, archive.Bytes(), 0o644); err != nil {
		return err
	}
	var err error
	if m.sum, err = dirhash.HashZip(name, dirhash.Hash1); err != nil {
		return err
	}
	text, err := os.ReadFile(m.name)
	if err != nil {
		return err
	}
	m.modSum, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	})
	if err != nil || o.proxy == "" {
		return err
	}
	return m.write(o, text, archive.Bytes())
}

// sumRequired adds the checksums of the modules that m requires to its go.sum.
func (m *published) sumRequired(version string) error {
	if len(m.requires) == 0 {
		return nil
	}
	name := filepath.Join(filepath.Dir(m.name), "go.sum")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for _, r := range m.requires {
		lines = append(lines, r.path+" "+version+" "+r.sum, r.path+" "+version+"/go.mod "+r.modSum)
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	slices.Sort(lines)
	return os.WriteFile(name, []byte(strings.Join(slices.Compact(lines), "\n")+"\n"), 0o644)
}

// write writes m into the file proxy, in the layout of the GOPROXY protocol.
func (m *published) write(o options, mod, archive []byte) error {
	dir := filepath.Join(o.proxy, filepath.FromSlash(m.path), "@v") // no capital letters, which would be escaped
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, o.version, time.Now().UTC().Format(time.RFC3339))
	for name, content := range map[string][]byte{
		o.version + ".info": []byte(info), o.version + ".mod": mod, o.version + ".zip": archive, "list": []byte(o.version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
