package doctor

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func files(pairs ...string) fstest.MapFS {
	m := make(fstest.MapFS)
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return m
}

func TestMachine(t *testing.T) {
	for name, test := range map[string]struct {
		machine machine
		want    []string // status, check and a part of the text
	}{
		"good": {
			machine{root: files("proc/sys/net/core/somaxconn", "4096\n", "proc/sys/net/core/rmem_max", "7500000\n"), procs: 4, descriptors: 20_000},
			[]string{"pass descriptors 20000", "pass somaxconn 4096", "pass buffers 7500000", "pass processors no cgroup"},
		},
		"poor": {
			machine{root: files("proc/sys/net/core/somaxconn", "128\n", "proc/sys/net/core/rmem_max", "212992\n"), procs: 4, descriptors: 1024},
			[]string{"warn descriptors 1024", "warn somaxconn 128", "note buffers 212992", "pass processors GOMAXPROCS is 4"},
		},
		"cgroup": {
			machine{root: files("proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/cpu.max", "150000 100000\n", "sys/fs/cgroup/a/b/cpu.max", "max 100000\n"), procs: 8},
			[]string{"warn processors the cgroup grants 1.5 processors"},
		},
		"cgroup with enough": {
			machine{root: files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "400000 100000\n"), procs: 4},
			[]string{"pass processors the cgroup grants 4 processors"},
		},
		"old cgroup": {
			machine{root: files("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "300000\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000"), procs: 4},
			[]string{"warn processors the cgroup grants 3 processors"},
		},
		"nothing known": {machine{root: files("proc/self/cgroup", "0::/a\nbroken", "sys/fs/cgroup/a/cpu.max", "x y"), procs: 4}, []string{"pass processors no cgroup"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := test.machine
			m.findings = new(findings)
			m.examine()
			if len(m.list) != len(test.want) {
				t.Fatalf("%+v, want %q", m.list, test.want)
			}
			for i, f := range m.list {
				status, rest, _ := strings.Cut(test.want[i], " ")
				check, part, _ := strings.Cut(rest, " ")
				if string(f.Status) != status || f.Check != check || !strings.Contains(f.Text, part) || f.Status == Warn && f.Advice == "" {
					t.Errorf("%+v, want %q", f, test.want[i])
				}
				Asserted(f)
			}
		})
	}
	if g := Machine(); len(g.Findings) == 0 {
		t.Error("nothing is known of this machine")
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"arith-1 at [::1]:80 é 文": "arith-1 at [::1]:80 é 文",
		"two\nlines\tand a tab":   "two lines and a tab",
		"\x1b[31mred\x1b[0m":      `\x1b[31mred\x1b[0m`,
		"\u009b2J\u202eabc\xff":   `\u009b2J\u202eabc\xff`,
		strings.Repeat("é", 500):  strings.Repeat("é", longest) + "…",
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %q, want %q", text, got, want)
		}
	}
}
