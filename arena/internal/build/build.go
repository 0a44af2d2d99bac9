// Package build makes the programs of the peers, and makes them anew only when something changed
// that they are built from.
package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
)

// Variable names a folder for what is built, in place of the user's cache.
const Variable = "ARENA_CACHE"

// Cache returns the folder that the programs of all peers are built into.
func Cache() (string, error) {
	if folder := os.Getenv(Variable); folder != "" {
		return filepath.Abs(folder)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for built programs: %w: set %s", err, Variable)
	}
	return filepath.Join(folder, "anser-arena"), nil
}

// Builder builds. Its methods are safe for concurrent use, also by several processes.
type Builder struct {
	Root  string // of the repository
	Cache string
	Tools *need.Checker
}

// Out returns the folder for {out} in the commands of a peer.
func (b *Builder) Out(f *peer.Folder) string { return filepath.Join(b.Cache, f.Name) }

// Expand puts the folder in place of {out}.
func (b *Builder) Expand(f *peer.Folder, command []string) []string {
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = strings.ReplaceAll(word, "{out}", b.Out(f))
	}
	return out
}

// stamp is the file in {out} that holds the hash of what was built last.
const stamp = ".arena-hash"

// Error is a build that failed, with what the command said.
type Error struct {
	Folder  string
	Command []string
	Said    string
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("build %s: %s: %v", e.Folder, strings.Join(e.Command, " "), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Current reports whether the programs of a folder are built from what is there now.
func (b *Builder) Current(f *peer.Folder) (bool, error) {
	hash, err := b.sum(f)
	if err != nil {
		return false, err
	}
	return b.current(f, hash), nil
}

func (b *Builder) current(f *peer.Folder, hash string) bool {
	built, err := os.ReadFile(filepath.Join(b.Out(f), stamp))
	return err == nil && string(built) == hash
}

func (b *Builder) sum(f *peer.Folder) (string, error) {
	var tools []string
	for _, n := range f.Needs {
		tools = append(tools, n+" "+b.Tools.Version(n))
	}
	hash, err := sum(b.Root, f, tools)
	if err != nil {
		return "", fmt.Errorf("look for changes in %s: %w", f.Name, err)
	}
	return hash, nil
}

// Build builds the programs of a folder unless they are current, and reports whether it did.
// An error of a command is an *Error. It waits while another process builds into the same folder.
func (b *Builder) Build(ctx context.Context, f *peer.Folder) (built bool, err error) {
	out := b.Out(f)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return false, err
	}
	unlock, err := lock(ctx, filepath.Join(b.Cache, f.Name+".lock"))
	if err != nil {
		return false, err
	}
	defer unlock()
	hash, err := b.sum(f)
	if err != nil || b.current(f, hash) {
		return false, err
	}
	// Without the stamp first: a build that is interrupted must not look finished.
	if err := os.Remove(filepath.Join(out, stamp)); err != nil && !os.IsNotExist(err) {
		return false, err
	}
	for _, command := range f.Build {
		if err := b.command(ctx, f, b.Expand(f, command)); err != nil {
			return false, err
		}
	}
	return true, os.WriteFile(filepath.Join(out, stamp), []byte(hash), 0o644)
}

func (b *Builder) command(ctx context.Context, f *peer.Folder, command []string) error {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = f.Path
	c.Env = append(os.Environ(), "GOWORK=off")
	// Build tools start others. They have a group of their own, so that all end when the user has
	// enough.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil {
		return &Error{Folder: f.Name, Command: command, Said: said.String(), Err: err}
	}
	return nil
}

// lock makes sure that one process builds a folder at a time.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
