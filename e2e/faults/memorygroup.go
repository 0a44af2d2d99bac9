package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memoryGroup is a cgroup with a limit of memory. A process that takes more is killed by the
// system.
type memoryGroup struct {
	dir   string
	files groupFiles
}

// groupFiles are what the two versions of cgroups call the same.
type groupFiles struct {
	root   string
	limit  string
	swap   string // not there where the system does not count what is swapped
	peak   string // of old systems of version 2 not there
	events string
}

var groupVersions = []groupFiles{
	{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "memory.peak", "memory.events"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"},
}

// errNoGroups means that there are no cgroups for memory.
var errNoGroups = errors.New("a cgroup with a limit of memory: neither /sys/fs/cgroup (version 2, with memory in its cgroup.subtree_control) nor /sys/fs/cgroup/memory (version 1) can have one here")

// newMemoryGroup makes one.
func newMemoryGroup(limit int64) (*memoryGroup, error) {
	why := errNoGroups
	for _, v := range groupVersions {
		if _, err := os.Stat(filepath.Join(v.root, "cgroup.procs")); err != nil {
			continue // the folder may hold the folders of version 1
		}
		g := &memoryGroup{filepath.Join(v.root, fmt.Sprintf("anser-faults-%d-%08x", os.Getpid(), rand.Uint32())), v}
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			why = fmt.Errorf("a cgroup with a limit of memory needs root, and cgroups that may be written: %w", err)
			continue
		}
		err := g.limit(limit)
		if err == nil {
			return g, nil
		}
		if e := g.remove(); e != nil {
			return nil, errors.Join(err, e)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return nil, why
}

func (g *memoryGroup) limit(bytes int64) error {
	text := strconv.FormatInt(bytes, 10)
	if err := g.write(g.files.limit, text); err != nil {
		return err
	}
	if g.files.swap == "memory.swap.max" {
		text = "0" // there it is a limit of its own
	}
	if err := g.write(g.files.swap, text); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// write writes to a file of the group that is there. To make one is forbidden, which would hide
// that it is not.
func (g *memoryGroup) write(name, text string) error {
	f, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// checkMemoryGroup returns an error if a group cannot be created.
func checkMemoryGroup() error {
	g, err := newMemoryGroup(1 << 30)
	if err != nil {
		return err
	}
	return g.remove()
}

// enterGroup moves this process into the group of that folder.
func enterGroup(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// used returns the most memory that was used, 0 if that is not known, and how often the system has
// killed a process.
func (g *memoryGroup) used() (peak int64, kills int, err error) {
	text, err := os.ReadFile(filepath.Join(g.dir, g.files.peak))
	if err == nil {
		peak, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, err
	}
	text, err = os.ReadFile(filepath.Join(g.dir, g.files.events))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			kills, err = strconv.Atoi(value)
		}
	}
	return peak, kills, err
}

// remove removes the group, whose processes have ended: the system may need a moment to notice.
func (g *memoryGroup) remove() error {
	for end := time.Now().Add(bound); ; time.Sleep(5 * time.Millisecond) {
		err := os.Remove(g.dir)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
