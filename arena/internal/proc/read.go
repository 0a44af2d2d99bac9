// Package proc reads what processes and the machine have used, from /proc, at many moments.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of the times in /proc: USER_HZ is 100 on every architecture that Go knows.
const tick = 10 * time.Millisecond

// stat is what /proc/PID/stat says; see proc_pid_stat(5).
type stat struct {
	parent   int
	children time.Duration // CPU time of children that ended and were waited for
	own      time.Duration // CPU time in ticks, for where the clock cannot be read
	resident int64         // bytes
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

// parseStat reads the fields from the third on. The second, the name of the program, may have
// spaces and parentheses in it.
func parseStat(text []byte) (stat, error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 22 {
		return stat{}, fmt.Errorf("%d fields in %q: at least 22 are expected", len(fields), text)
	}
	var numbers [5]int64
	for i, at := range [...]int{4 - 3, 14 - 3, 15 - 3, 16 - 3, 17 - 3} {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return stat{}, err
		}
		numbers[i] = n
	}
	pages, err := strconv.ParseInt(fields[24-3], 10, 64)
	if err != nil {
		return stat{}, err
	}
	return stat{
		parent:   int(numbers[0]),
		own:      time.Duration(numbers[1]+numbers[2]) * tick,
		children: time.Duration(numbers[3]+numbers[4]) * tick,
		resident: pages * int64(os.Getpagesize()),
	}, nil
}

// clock returns the CPU time of a process, in nanoseconds where /proc counts in ticks of 10 ms: a
// measurement of a second would be wrong by 1 % with those. See clock_getcpuclockid(3) and, for
// the number, CPUCLOCK_SCHED in the kernel's posix-timers.
func clock(pid int) (time.Duration, error) {
	const sched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// io is what /proc/PID/io says: system calls of the kinds read and write, and their bytes.
type io struct{ reads, writes, readBytes, writtenBytes int64 }

func readIO(pid int) (io, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return io{}, err
	}
	return parseIO(string(text))
}

func parseIO(text string) (io, error) {
	var out io
	for _, field := range []struct {
		name string
		to   *int64
	}{{"rchar", &out.readBytes}, {"wchar", &out.writtenBytes}, {"syscr", &out.reads}, {"syscw", &out.writes}} {
		_, rest, ok := strings.Cut(text, field.name+": ")
		if !ok {
			return io{}, fmt.Errorf("no %s in %q", field.name, text)
		}
		number, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return io{}, err
		}
		*field.to = n
	}
	return out, nil
}

// busy returns the CPU time that processes of the whole machine have used: user, nice and system.
func busy() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(text))
}

func parseBusy(text string) (time.Duration, error) {
	first, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(first)
	if len(fields) < 4 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", first)
	}
	var sum time.Duration
	for _, field := range fields[1:4] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// Load returns the load average of the last minute.
func Load() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// ethernetHeader is counted by interfaces between hosts, and not by the loopback one.
const ethernetHeader = 14

// wire returns the bytes that passed an interface of the namespace that a process is in, in both
// directions, with the headers of TCP and IP.
func wire(pid int, name string) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/dev")
	if err != nil {
		return 0, err
	}
	return parseWire(string(text), name)
}

func parseWire(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		found, rest, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(found) != name {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) < 10 {
			return 0, fmt.Errorf("/proc/net/dev has %q", line)
		}
		var numbers [4]int64
		for i, at := range [...]int{0, 1, 8, 9} { // bytes and packets received, then sent
			n, err := strconv.ParseInt(fields[at], 10, 64)
			if err != nil {
				return 0, err
			}
			numbers[i] = n
		}
		if name == "lo" { // what is sent is received: once is both directions
			return numbers[0], nil
		}
		return numbers[0] + numbers[2] - ethernetHeader*(numbers[1]+numbers[3]), nil
	}
	return 0, fmt.Errorf("there is no interface %s", name)
}
