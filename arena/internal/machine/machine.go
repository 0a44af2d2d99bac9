// Package machine says where the arena runs.
package machine

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/result"
)

// Describe returns what is known of this machine, with the versions of the tools that peers need.
func Describe(tools *need.Checker, peers []*peer.Peer) result.Machine {
	m := result.Machine{
		CPU:       field("/proc/cpuinfo", "model name", ":"),
		Cores:     runtime.NumCPU(),
		MemoryMiB: memory(),
		OS:        strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`),
		Tools:     make(map[string]string),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	needs := []string{"go"}
	for _, p := range peers {
		needs = append(needs, p.Folder.Needs...)
	}
	slices.Sort(needs)
	for _, n := range slices.Compact(needs) {
		if v := tools.Version(n); v != "" {
			m.Tools[n] = v
		}
	}
	return m
}

// field returns the first value of a name in a file of lines.
func field(file, name, separator string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		found, value, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(found) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func memory() int {
	kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal", ":"), " ")
	n, err := strconv.Atoi(kib)
	if err != nil {
		return 0
	}
	return n >> 10
}

// RaiseFiles lets this process and its children open as many files as the system allows: a
// connection for each of 5000 callers is more than the usual 1024.
func RaiseFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	// Go has raised the limit already, and would give children the old one unless it is set here.
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}
