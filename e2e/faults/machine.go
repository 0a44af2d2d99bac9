package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// machine is where a row ran, and with what.
type machine struct {
	Commit string            `json:"commit,omitempty"` // with + when files were changed
	Go     string            `json:"go,omitempty"`
	System string            `json:"system,omitempty"`
	CPU    string            `json:"cpu,omitempty"`
	CPUs   int               `json:"cpus,omitempty"`
	Uses   map[string]string `json:"uses,omitempty"` // versions of modules that take part
	// Busy is the share of the machine that was used by others in a second before the row began.
	Busy float64 `json:"busy"`
}

// describe tells of this machine.
func describe(ctx context.Context) machine {
	m := machine{
		Go: runtime.Version(), CPUs: runtime.NumCPU(), Commit: commit(ctx), Uses: make(map[string]string),
		System: runtime.GOOS + "/" + runtime.GOARCH, CPU: field("/proc/cpuinfo", "model name"),
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(release))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if slices.Contains([]string{"go.etcd.io/etcd/server/v3", "google.golang.org/grpc", "github.com/smallnest/rpcx"}, d.Path) {
				m.Uses[d.Path] = d.Version
			}
		}
	}
	return m
}

// busy measures how much of the machine others use now, from 0 to 1; 0 where /proc does not tell.
func busy() float64 {
	all1, idle1 := ticks()
	time.Sleep(time.Second)
	all2, idle2 := ticks()
	if all2 == all1 {
		return 0
	}
	return 1 - float64(idle2-idle1)/float64(all2-all1)
}

// ticks returns the time of all processors, and how much of it they were idle.
func ticks() (all, idle int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		var n int64
		if _, err := fmt.Sscan(f, &n); err != nil {
			continue // the name
		}
		if all += n; i == 4 || i == 5 { // idle, and waiting for a disk
			idle += n
		}
	}
	return all, idle
}

// commit returns the short name of the commit that is checked out, with + when files differ from it.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs/reliability.*").Output()
	if err != nil || len(changed) > 0 {
		return strings.TrimSpace(string(name)) + "+"
	}
	return strings.TrimSpace(string(name))
}

// field returns the first value of a name in a file of lines.
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if found, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(found) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
