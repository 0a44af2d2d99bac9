package nacos

import (
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Each step is a list of Nacos, whose instances have the form "address data owner stamp", and the
// list of the watch.
func TestHistory(t *testing.T) {
	type step struct {
		after      time.Duration // since the step before
		list, want string
	}
	for name, steps := range map[string][]step{
		"an older one of the same owner": {
			{0, "h:1 a me 1", "h:1=a"}, {0, "h:1 b me 2", "h:1=b"}, {0, "h:1 a me 1", "h:1=b"}, {0, "h:1 c me 3", "h:1=c"},
		},
		"an older one after all are gone": {
			{0, "h:1 b me 2", "h:1=b"}, {0, "", ""}, {0, "h:1 a me 1", ""}, {0, "h:1 b me 2", "h:1=b"},
		},
		"Nacos lists the older one for long": {
			{0, "h:1 b me 2", "h:1=b"}, {insistence - 1, "h:1 a me 1", "h:1=b"}, {1, "h:1 a me 1", "h:1=a"},
		},
		"Nacos has listed the newer one again": {
			{0, "h:1 b me 2", "h:1=b"}, {insistence - 1, "h:1 b me 2", "h:1=b"}, {1, "h:1 a me 1", "h:1=b"},
		},
		"another owner with a slower clock": {
			{0, "h:1 b me 2", "h:1=b"}, {0, "h:1 a you 1", "h:1=a"}, {0, "h:1 c me 3", "h:1=c"},
		},
		"an older one of a predecessor": {
			{0, "h:1 b me 2", "h:1=b"}, {0, "h:1 c you 3", "h:1=c"}, {0, "h:1 a me 1", "h:1=c"},
		},
		"an older one at another address": {
			{0, "h:1 a me 1", "h:1=a"}, {0, "h:1 a me 1; h:2 b me 2", "h:2=b"}, {0, "h:1 a me 1", "h:2=b"}, {0, "", ""}, {0, "h:1 a me 1", ""},
		},
		"an older one, and one of another owner": {
			{0, "h:1 b me 9", "h:1=b"}, {0, "h:1 a me 8; h:2 c you 1", "h:2=c"},
		},
		"another program's": {
			{0, "h:1 b  2", "h:1=b"}, {0, "h:1 a  1", "h:1=a"},
		},
		"an older one, and a newer one of another key": {
			{0, "h:1 a me 1; g:1 a me 2", "g:1=a h:1=a"}, {0, "h:1 b me 0; g:1 b me 3", "g:1=b h:1=a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			now := time.Now()
			for i, s := range steps {
				now = now.Add(s.after)
				got, problem := h.list("arith", nacosList(t, s.list), now)
				if text := dataOf(got); text != s.want || problem != nil {
					t.Fatalf("step %d: %q becomes %q, %v, want %q", i+1, s.list, text, problem, s.want)
				}
			}
			now = now.Add(insistence)
			if h.list("arith", nil, now); len(h.newest) != 0 || len(h.shown) != 0 {
				t.Errorf("a history of nothing holds %v, %v", h.newest, h.shown)
			}
		})
	}
}

// nacosList returns the list of a step of TestHistory. Addresses of one host have one key.
func nacosList(t *testing.T, text string) (all []nacosInstance) {
	t.Helper()
	for one := range strings.SplitSeq(text, "; ") {
		if one == "" {
			continue
		}
		field := strings.Split(one, " ")
		ip, _, _ := strings.Cut(field[0], ":")
		in := registry.Instance{ID: ip, Service: "arith", Address: field[0], Tags: map[string]string{"n": field[1]}}
		metadata, err := metadataOf(in, field[2], 0)
		if err != nil {
			t.Fatal(err)
		}
		metadata[stampKey] = field[3]
		where := placeOf(in)
		all = append(all, nacosInstance{IP: where.ip, Port: where.port, Cluster: where.cluster, Weight: 1, Metadata: metadata})
	}
	return all
}

func dataOf(list []registry.Instance) string {
	var texts []string
	for _, in := range list {
		texts = append(texts, in.Address+"="+in.Tags["n"])
	}
	return strings.Join(texts, " ")
}
