package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// counts are system calls of a role.
type counts struct{ all, reads, writes float64 }

func (c *counts) add(o counts) {
	c.all += o.all
	c.reads += o.reads
	c.writes += o.writes
}

// each returns what a call takes, from a short and a longer run.
func each(few, many counts, calls float64) counts {
	return counts{(many.all - few.all) / calls, (many.reads - few.reads) / calls, (many.writes - few.writes) / calls}
}

// The system calls that read from sockets and write to them. Those of /proc/PID/io lack all with a
// message or an address.
var (
	readCalls  = []string{"read", "readv", "recvfrom", "recvmsg", "recvmmsg"}
	writeCalls = []string{"write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile"}
)

// syscalls counts the system calls that a call takes on both sides, by strace, which makes
// everything many times slower: no other figure of such a run means anything. Two runs, a short
// and a longer one, make the difference in which starting and ending cancel out.
func syscalls(ctx context.Context, j *Job) (client, server counts, err error) {
	if _, err := exec.LookPath("strace"); err != nil {
		return client, server, errors.New("strace is not installed: apt-get install -y --no-install-recommends strace")
	}
	few := max(j.Shape.Callers*max(j.Shape.Window, 1), 100)
	many := few + max(5*few, 5000)
	var runs [2]map[string]counts
	for i, calls := range []int{few, many} {
		if runs[i], err = straced(ctx, j, calls); err != nil {
			return client, server, err
		}
	}
	role := func(name string) counts { return each(runs[0][name], runs[1][name], float64(many-few)) }
	return role("client"), role("server"), nil
}

// straced returns the system calls of both roles in a run of that many calls.
func straced(ctx context.Context, j *Job, calls int) (map[string]counts, error) {
	folder, err := os.MkdirTemp("", "arena-strace-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	slow := *j
	slow.Warmup, slow.Shape.Rate, slow.Shape.Calls = 0, 0, calls
	n := 0
	s := &session{job: &slow, wrap: func(command []string, role string) []string {
		n++
		file := filepath.Join(folder, role+"."+strconv.Itoa(n))
		return append([]string{"strace", "-f", "-c", "-U", "calls,name", "-o", file}, command...)
	}}
	defer s.close()
	if err := s.startServers(ctx); err != nil {
		return nil, err
	}
	if err := s.startClients(); err != nil {
		return nil, err
	}
	texts, err := s.lines(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		l, err := parseLine(text)
		if err != nil {
			return nil, err
		}
		if l.Errors > 0 || l.Wrong > 0 {
			return nil, fmt.Errorf("%d errors and %d wrong replies under strace: %s", l.Errors, l.Wrong, l.FirstError)
		}
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return readCounts(folder)
}

func readCounts(folder string) (map[string]counts, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	sums := make(map[string]counts)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		n, err := parseStrace(string(text))
		if err != nil {
			return nil, err
		}
		role, _, _ := strings.Cut(filepath.Base(file), ".")
		sum := sums[role]
		sum.add(n)
		sums[role] = sum
	}
	return sums, nil
}

// parseStrace reads a summary with the columns calls and name, whose last line is the total.
func parseStrace(text string) (counts, error) {
	var c counts
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		n, err := strconv.ParseFloat(fields[0], 64)
		switch {
		case err != nil: // the head and the rules
		case fields[1] == "total":
			c.all = n
			return c, nil
		case slices.Contains(readCalls, fields[1]):
			c.reads += n
		case slices.Contains(writeCalls, fields[1]):
			c.writes += n
		}
	}
	return c, fmt.Errorf("strace wrote no total: %q", short([]byte(text)))
}

// AddSyscalls counts and enters the counts into figures. Reads and writes that /proc does not know
// are entered, too.
func AddSyscalls(ctx context.Context, j *Job, f *result.Figures) error {
	client, server, err := syscalls(ctx, j)
	if err != nil {
		return err
	}
	enter(f, client, server)
	return nil
}

func enter(f *result.Figures, client, server counts) {
	f.ClientSyscalls, f.ServerSyscalls = &client.all, &server.all
	for _, figure := range []struct {
		to    **float64
		count float64
	}{
		{&f.ClientReads, client.reads},
		{&f.ClientWrites, client.writes},
		{&f.ServerReads, server.reads},
		{&f.ServerWrites, server.writes},
	} {
		if *figure.to == nil {
			*figure.to = &figure.count
		}
	}
	tidy(f)
}
