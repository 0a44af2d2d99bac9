// Package lastknown keeps on disk what a client last learned from its registry. It serves a client
// that starts while the registry cannot be reached.
package lastknown

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// File is the file of a target. It holds either a list of instances or bytes of its user. The zero
// value keeps nothing. Safe for concurrent use: each method replaces or reads the file as a whole.
type File struct {
	path   string // "" when there is none
	target string
}

// content is what the file of a list holds.
type content struct {
	Target    string              `json:"target"`
	Saved     time.Time           `json:"saved"`
	Instances []registry.Instance `json:"instances"`
}

// New returns the file of a target in dir, or in the user's folder for caches if dir is empty. It
// does not touch the disk. With an error, the file returned keeps nothing.
func New(dir, target string) (*File, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return new(File), fmt.Errorf("no snapshots of instance lists: %w: use anser.SnapshotDir", err)
		}
		dir = filepath.Join(cache, "anser")
	}
	sum := sha256.Sum256([]byte(target))
	return &File{path: filepath.Join(dir, hex.EncodeToString(sum[:8])+".json"), target: target}, nil
}

// Enabled reports whether the file keeps anything.
func (f *File) Enabled() bool { return f.path != "" }

// SaveList saves a list of instances, with the time.
func (f *File) SaveList(list []registry.Instance) error {
	if !f.Enabled() {
		return nil
	}
	data, err := json.MarshalIndent(content{f.target, time.Now().UTC(), list}, "", "\t")
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return f.Write(data)
}

// LoadList returns the saved list and the time at which it was saved. A missing file is an error
// like any other.
func (f *File) LoadList() ([]registry.Instance, time.Time, error) {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("load snapshot: %w", err)
	}
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, time.Time{}, fmt.Errorf("load snapshot %s: %w", f.path, err)
	}
	if c.Target != f.target {
		return nil, time.Time{}, fmt.Errorf("load snapshot %s: it belongs to %s", f.path, c.Target)
	}
	return c.Instances, c.Saved, nil
}

// Write replaces the file in one step, so that a crash leaves the old one or the new one.
func (f *File) Write(data []byte) error {
	if !f.Enabled() {
		return nil
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	temp, err := os.CreateTemp(dir, "snapshot-*")
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	_, err = temp.Write(data)
	if e := temp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp.Name(), f.path)
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// Read returns the bytes that Write wrote, or nil if there are none.
func (f *File) Read() ([]byte, error) {
	if !f.Enabled() {
		return nil, nil
	}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load snapshot: %w", err)
	}
	return data, nil
}
