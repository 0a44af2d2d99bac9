package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/suite"
)

func folderOf(language string, needs []string, names ...string) []*peer.Peer {
	f := &peer.Folder{Name: names[0], Language: language, Needs: needs}
	for _, name := range names {
		f.Peers = append(f.Peers, &peer.Peer{
			Name: name, Folder: f, Workloads: []string{peer.Say}, Conns: []string{peer.Shared}, Payloads: []int{581}, WarmupS: 2,
		})
	}
	return f.Peers
}

func order(p *Plan) string {
	var words []string
	for _, s := range p.Steps {
		words = append(words, s.Peer.Name+strings.Repeat("'", s.Round))
		if s.Last {
			words[len(words)-1] += "."
		}
	}
	return strings.Join(words, " ")
}

func TestPlan(t *testing.T) {
	a, b := folderOf("go", []string{"go"}, "a", "a2"), folderOf("java", []string{"go"}, "b")
	c := folderOf("go", []string{"no-such-program", "go", "nor-this", "or-that"}, "c")
	peers := slices.Concat(a, b, c)
	s := &suite.Suite{Seconds: 1, Rounds: 2, Lines: []suite.Line{
		{Callers: 5, Conns: suite.BestConns},
		{Callers: 5},
		{Callers: 7, Conns: 3, Rounds: 1, Seconds: 3, Hosts: 2},
	}}
	p := NewPlan(s, peers, new(need.Checker))
	if got, want := order(p), "a a2 b a'. a2'. b'. a. a2. b."; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
	var out []string
	for _, n := range p.NotRun {
		out = append(out, n.Peer+": "+n.Reason)
	}
	want := []string{
		"c: needs no-such-program, nor-this and or-that",
		"a: say, 5 callers, a connection for each caller: does not support a connection for each caller",
	}
	if len(out) != 4 || out[0] != want[0] || out[1] != want[1] {
		t.Errorf("not run: %q", out)
	}
	if first, last := p.Steps[0], p.Steps[8]; first.Shapes[0].Seconds != 1 || first.Shapes[0].Conns != 2 || first.Warmup != 2 || last.Shapes[0].Seconds != 3 || last.Shapes[0].Conns != 3 {
		t.Errorf("%+v and %+v", first, last)
	}
	if got, want := p.Lasts(), 6*3*time.Second+3*5*time.Second+9*overhead+3*overheadJVM; got != want {
		t.Errorf("it lasts %v, want %v", got, want)
	}
	if p.Peers() != 3 || len(p.Folders()) != 2 || !p.Hosts() {
		t.Errorf("%d peers in %d folders, hosts: %v", p.Peers(), len(p.Folders()), p.Hosts())
	}
	p.WithoutHosts("only root")
	if p.Hosts() || len(p.NotRun) != 7 {
		t.Errorf("without hosts: %s, %+v", order(p), p.NotRun)
	}
	p.WithoutFolder(a[0].Folder, "does not build")
	if got := order(p); got != "b b'." || len(p.NotRun) != 9 {
		t.Errorf("without a folder: %s, %+v", got, p.NotRun)
	}
	s.MostWarmup = 1.5
	if p := NewPlan(s, b, new(need.Checker)); p.Steps[0].Warmup != 1.5 {
		t.Errorf("the warm-up is %v", p.Steps[0].Warmup)
	}
	s.Warmup = new(0.0)
	if p := NewPlan(s, b, new(need.Checker)); p.Steps[0].Warmup != 0 {
		t.Errorf("the warm-up is %v", p.Steps[0].Warmup)
	}
}
