// Package sysmem determines how much memory the process may use.
package sysmem

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// Limit returns the minimum of the machine's memory and the limits of the process's cgroups, in
// bytes.
func Limit() int64 {
	least := int64(math.MaxInt64)
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		least = int64(info.Totalram) * int64(info.Unit)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path; the hierarchy of cgroup v2 is 0 and names no controllers.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) != 3:
		case part[0] == "0":
			least = min(least, cgroupLimit("/sys/fs/cgroup", part[2], "memory.max"))
		case strings.Contains(","+part[1]+",", ",memory,"):
			least = min(least, cgroupLimit("/sys/fs/cgroup/memory", part[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// cgroupLimit returns the lowest limit of a group and its ancestors. In a container the path may
// be that of the host, of which only the root exists.
func cgroupLimit(mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		if text, err := os.ReadFile(path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 { // not "max"
				least = min(least, n)
			}
		}
		if dir == "/" {
			return least
		}
	}
}
