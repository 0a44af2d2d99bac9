package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// Syscalls counts the system calls of every kind that a call takes on both sides, by strace, which
// makes everything many times slower: no other figure of such a run means anything. Two runs, a short
// and a longer one, make the difference in which starting and ending cancel out.
func Syscalls(ctx context.Context, j *Job) (client, server float64, err error) {
	if _, err := exec.LookPath("strace"); err != nil {
		return 0, 0, errors.New("strace is not there: apt-get install -y --no-install-recommends strace")
	}
	few := max(j.Shape.Callers*max(j.Shape.Window, 1), 100)
	many := few + max(5*few, 5000)
	var counts [2]map[string]float64
	for i, calls := range []int{few, many} {
		if counts[i], err = straced(ctx, j, calls); err != nil {
			return 0, 0, err
		}
	}
	each := func(role string) float64 { return (counts[1][role] - counts[0][role]) / float64(many-few) }
	return each("client"), each("server"), nil
}

// straced returns the system calls of both roles in a run of so many calls.
func straced(ctx context.Context, j *Job, calls int) (map[string]float64, error) {
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

func readCounts(folder string) (map[string]float64, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	counts := make(map[string]float64)
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
		counts[role] += float64(n)
	}
	return counts, nil
}

// parseStrace returns the sum of a summary with the columns calls and name.
func parseStrace(text string) (int64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == "total" {
			return strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("strace wrote no total: %q", short([]byte(text)))
}

// AddSyscalls counts and enters the counts into figures.
func AddSyscalls(ctx context.Context, j *Job, f *result.Figures) error {
	client, server, err := Syscalls(ctx, j)
	if err != nil {
		return err
	}
	f.ClientSyscalls, f.ServerSyscalls = &client, &server
	tidy(f)
	return nil
}
