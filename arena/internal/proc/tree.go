package proc

import (
	"os"
	"slices"
	"strconv"
	"time"
)

// Tree is a process with its descendants, at the moments of the samples.
type Tree struct {
	CPU      Series // nanoseconds
	Resident Series // bytes
	Reads    Series // system calls of the kind read, which those of the kind recv are not
	Writes   Series
	ReadSum  Series // bytes that those calls read
	WriteSum Series

	root    int
	members []int
	last    usage
}

// usage is the sum over the members.
type usage struct {
	cpu      time.Duration
	resident int64
	io       io
}

// sample reads the members. A process that has ended counts in what its parent waited for, and no
// counter goes back: where a process disappears between two readings, the last figure stays.
func (t *Tree) sample(at int64) {
	var sum usage
	for _, pid := range t.members {
		s, err := readStat(pid)
		if err != nil {
			continue
		}
		own, err := clock(pid)
		if err != nil {
			own = s.own
		}
		sum.cpu += own + s.children
		sum.resident += s.resident
		if n, err := readIO(pid); err == nil {
			sum.io.reads += n.reads
			sum.io.writes += n.writes
			sum.io.readBytes += n.readBytes
			sum.io.writtenBytes += n.writtenBytes
		}
	}
	sum.cpu = max(sum.cpu, t.last.cpu)
	sum.io = io{
		reads:        max(sum.io.reads, t.last.io.reads),
		writes:       max(sum.io.writes, t.last.io.writes),
		readBytes:    max(sum.io.readBytes, t.last.io.readBytes),
		writtenBytes: max(sum.io.writtenBytes, t.last.io.writtenBytes),
	}
	t.note(at, sum)
}

// note adds a sample.
func (t *Tree) note(at int64, sum usage) {
	t.last = sum
	t.CPU.Add(at, float64(sum.cpu))
	t.Resident.Add(at, float64(sum.resident))
	t.Reads.Add(at, float64(sum.io.reads))
	t.Writes.Add(at, float64(sum.io.writes))
	t.ReadSum.Add(at, float64(sum.io.readBytes))
	t.WriteSum.Add(at, float64(sum.io.writtenBytes))
}

// grow finds the members anew.
func (t *Tree) grow(parents map[int]int) { t.members = descendants(t.root, parents) }

// descendants returns the process and everything below it.
func descendants(root int, parents map[int]int) []int {
	found := []int{root}
	for i := 0; i < len(found); i++ {
		for pid, parent := range parents {
			if parent == found[i] && !slices.Contains(found, pid) {
				found = append(found, pid)
			}
		}
	}
	slices.Sort(found[1:])
	return found
}

// parentsOfAll returns the parent of every process. /proc/PID/task/TID/children would be less to
// read, but not every kernel has it.
func parentsOfAll() map[int]int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := make(map[int]int, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			parents[pid] = s.parent
		}
	}
	return parents
}

// Descendants returns a process and everything below it, as it is now.
func Descendants(pid int) []int { return descendants(pid, parentsOfAll()) }
