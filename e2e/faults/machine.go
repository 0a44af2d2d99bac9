package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	// Others is the share that was used by others while the row ran, or nil where that was not
	// measured.
	Others *float64 `json:"others,omitempty"`
}

// describe describes this machine.
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
	share, _ := busyDuring(func() error {
		time.Sleep(time.Second)
		return nil
	})
	return share
}

// busyDuring measures how much of the machine is used while wait waits, whose error it returns.
func busyDuring(wait func() error) (float64, error) {
	all1, idle1 := ticks()
	err := wait()
	all2, idle2 := ticks()
	if err != nil || all2 == all1 {
		return 0, err
	}
	return 1 - float64(idle2-idle1)/float64(all2-all1), nil
}

// ticks returns the time of all processors, and how much of it they were idle.
func ticks() (all, idle int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	t := parseTicks(string(text))
	return t.all, t.idle
}

// cpuTicks are times of all processors since the system started, in hundredths of a second.
type cpuTicks struct {
	all, idle int64
	kernel    int64 // interrupts, such as for packets, which belong to no process
}

// The columns of /proc/stat, see proc_stat(5). The first is the name, and what guests use is part
// of other columns.
const (
	idleColumn    = 4
	diskColumn    = 5
	irqColumn     = 6
	softirqColumn = 7
	guestColumn   = 9
)

// parseTicks reads the first line of /proc/stat.
func parseTicks(stat string) (t cpuTicks) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i >= guestColumn {
			continue
		}
		t.all += n
		switch i {
		case idleColumn, diskColumn:
			t.idle += n
		case irqColumn, softirqColumn:
			t.kernel += n
		}
	}
	return t
}

// reading is a moment of the processors, and the time that this program and the children that it
// has waited for have used.
type reading struct {
	cpuTicks
	own time.Duration
}

// read reads it; false: this system does not say.
func read() (reading, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return reading{}, false
	}
	r := reading{cpuTicks: parseTicks(string(text))}
	for _, of := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(of, &u); err != nil {
			return reading{}, false
		}
		r.own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return r, true
}

// tick is the unit of /proc/stat on all architectures.
const tick = 10 * time.Millisecond

// others returns the share of the machine, from 0 to 1, that others have used from one reading to
// the other.
func (from reading) others(to reading) float64 {
	all := to.all - from.all
	if all <= 0 {
		return 0
	}
	used := all - (to.idle - from.idle) - (to.kernel - from.kernel) - int64((to.own-from.own)/tick)
	return min(max(float64(used)/float64(all), 0), 1)
}

// commit returns the short name of the commit that is checked out, with + when files differ from
// it.
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
