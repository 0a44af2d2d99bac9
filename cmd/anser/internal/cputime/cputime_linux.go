package cputime

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc: USER_HZ is 100 on every architecture that Go supports.
const tick = 10 * time.Millisecond

// ofProcess reads fields 14 and 15 of /proc/pid/stat; see proc(5). The name of the program, which
// may contain spaces, precedes them in parentheses.
func ofProcess(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ErrUnknown
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, ErrUnknown
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, ErrUnknown
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// socketAt returns the inode of the socket that listens on the address.
func socketAt(address string) (string, error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		return findLine("/proc/net/unix", func(f []string) string {
			if len(f) > 7 && f[7] == path {
				return f[6]
			}
			return ""
		})
	}
	want, err := localAddress(address)
	if err != nil {
		return "", err
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		inode, err := findLine(file, func(f []string) string {
			if len(f) > 9 && f[3] == listening && serves(f[1], want) {
				return f[9]
			}
			return ""
		})
		if err == nil {
			return inode, nil
		}
	}
	return "", ErrUnknown
}

const listening = "0A"

// findLine returns the first non-empty result of find for a line of the file.
func findLine(file string, find func(fields []string) string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", ErrUnknown
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if found := find(strings.Fields(s.Text())); found != "" {
			return found, nil
		}
	}
	return "", ErrUnknown
}

// serves reports whether a socket bound to local, in the format of /proc/net/tcp, accepts
// connections to want.
func serves(local string, want netip.AddrPort) bool {
	ip, port, _ := strings.Cut(local, ":")
	if n, err := strconv.ParseUint(port, 16, 16); err != nil || uint16(n) != want.Port() {
		return false
	}
	raw, err := hex.DecodeString(ip)
	if err != nil {
		return false
	}
	// 32-bit words in the byte order of the machine, assumed to be little-endian; on others the
	// address is not found and the figure is left out.
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	bound, ok := netip.AddrFromSlice(raw)
	return ok && (bound.IsUnspecified() || bound.Unmap() == want.Addr().Unmap())
}

// holders returns the processes that have the sockets open.
func holders(sockets map[string]bool) ([]int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil, ErrUnknown
	}
	found := make(map[string]bool)
	var pids []int
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(to, "socket:[") {
			continue
		}
		inode := to[len("socket:[") : len(to)-1]
		if !sockets[inode] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			continue
		}
		found[inode] = true
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	if len(found) != len(sockets) {
		return nil, ErrUnknown
	}
	return pids, nil
}
