package doctor

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine examines the limits of this machine, for a process that would serve or call from here.
func Machine() *Group {
	m := &machine{findings: new(findings), root: os.DirFS("/"), procs: runtime.GOMAXPROCS(0), descriptors: descriptors()}
	m.examine()
	return &Group{Name: "this machine", Findings: m.list}
}

// machine is what the kernel grants a process.
type machine struct {
	*findings
	root        fs.FS  // of the files of the kernel
	procs       int    // GOMAXPROCS
	descriptors uint64 // a process may have open; 0: not known
}

// Limits below which there is a warning.
const (
	fewDescriptors = 10_000 // a connection is a descriptor
	shortQueue     = 1024   // connections that wait to be accepted
	smallBuffer    = 7 << 20
)

func (m *machine) examine() {
	switch {
	case m.descriptors == 0:
	case m.descriptors < fewDescriptors:
		m.add("descriptors", Warn, "raise it with ulimit -n, or LimitNOFILE of systemd: every connection takes one", "a process may have %d files and connections open", m.descriptors)
	default:
		m.pass("descriptors", "a process may have %d files and connections open", m.descriptors)
	}
	m.atLeast("somaxconn", "proc/sys/net/core/somaxconn", shortQueue, "connections may wait for a listener to accept them",
		"raise net.core.somaxconn with sysctl: connections of a burst are lost, and come a second late")
	m.atLeast("buffers", "proc/sys/net/core/rmem_max", smallBuffer, "bytes may wait in a UDP socket, which is about QUIC only",
		"raise net.core.rmem_max and wmem_max to 7500000 with sysctl if servers speak QUIC")
	m.processors()
}

// atLeast compares a setting of the kernel with what servers need. For one that few servers need,
// a lower value is a note.
func (m *machine) atLeast(check, path string, least int64, what, advice string) {
	text, err := fs.ReadFile(m.root, path)
	if err != nil {
		return // not on this system
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	switch {
	case err != nil:
	case n >= least:
		m.pass(check, "%d %s", n, what)
	case check == "buffers":
		m.add(check, Note, advice, "%d %s", n, what)
	default:
		m.add(check, Warn, advice, "%d %s", n, what)
	}
}

// processors compares GOMAXPROCS with the limit of the cgroup: with more processors than time, the
// kernel pauses a process for a good part of each 100 ms.
func (m *machine) processors() {
	limit, ok := m.cpuLimit()
	if !ok {
		m.pass("processors", "GOMAXPROCS is %d, and no cgroup limits the processor time", m.procs)
		return
	}
	if most := max(int(math.Ceil(limit)), 2); m.procs > most {
		m.add("processors", Warn, "unset the variable GOMAXPROCS, which Go 1.25 and later sets by the limit, or set it to "+strconv.Itoa(most),
			"GOMAXPROCS is %d, and the cgroup grants %.4g processors: the kernel pauses the process", m.procs, limit)
		return
	}
	m.pass("processors", "GOMAXPROCS is %d, and the cgroup grants %.4g processors", m.procs, limit)
}

// cpuLimit returns the lowest limit of this process's cgroup and those above it, in processors.
func (m *machine) cpuLimit() (limit float64, ok bool) {
	text, _ := fs.ReadFile(m.root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		base, v2 := "sys/fs/cgroup", parts[0] == "0" && parts[1] == ""
		if !v2 {
			if !strings.Contains(","+parts[1]+",", ",cpu,") {
				continue
			}
			base += "/cpu"
		}
		for folder := parts[2]; ; folder = folder[:strings.LastIndexByte(folder, '/')] {
			if n, found := m.quota(base+strings.TrimRight(folder, "/"), v2); found && (!ok || n < limit) {
				limit, ok = n, true
			}
			if strings.Trim(folder, "/") == "" {
				break
			}
		}
	}
	return limit, ok
}

// quota reads the limit of one cgroup.
func (m *machine) quota(folder string, v2 bool) (float64, bool) {
	read := func(name string) string {
		text, _ := fs.ReadFile(m.root, folder+"/"+name)
		return strings.TrimSpace(string(text))
	}
	pair := strings.Fields(read("cpu.max"))
	if !v2 {
		pair = []string{read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")}
	}
	if len(pair) != 2 {
		return 0, false
	}
	quota, err := strconv.ParseFloat(pair[0], 64)
	period, failed := strconv.ParseFloat(pair[1], 64)
	if err != nil || failed != nil || quota <= 0 || period <= 0 {
		return 0, false // "max" or -1: no limit
	}
	return quota / period, true
}
