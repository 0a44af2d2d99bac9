package dns

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	c := client{config: path}
	if _, err := c.settings(); err == nil || !strings.Contains(err.Error(), "name one") {
		t.Errorf("without resolv.conf: %v", err)
	}
	c.servers = []string{"10.0.0.53:53"}
	if conf, err := c.settings(); err != nil || !slices.Equal(conf.servers, c.servers) {
		t.Errorf("with a server of its own: %+v, %v", conf, err)
	}
	c.servers = nil
	text := "# comment\n; another\nnameserver 10.0.0.1\nnameserver ::1\ndomain x\nsearch shop.svc.local svc.local a..b\noptions timeout:1 ndots:3\nnameserver 10.0.0.3\nnameserver 10.0.0.4\nnameserver\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := c.settings()
	if want := []string{"10.0.0.1:53", "[::1]:53", "10.0.0.3:53"}; err != nil || !slices.Equal(conf.servers, want) {
		t.Errorf("servers %q, %v", conf.servers, err)
	}
	for name, want := range map[string]string{
		"arith":     "arith.shop.svc.local. arith.svc.local. arith.",
		"arith.a.b": "arith.a.b.shop.svc.local. arith.a.b.svc.local. arith.a.b.",
		"a.b.c.d":   "a.b.c.d. a.b.c.d.shop.svc.local. a.b.c.d.svc.local.",
		"arith.":    "arith.",
	} {
		if got := strings.Join(conf.candidates(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if conf := parseConfig(""); !slices.Equal(conf.servers, []string{"127.0.0.1:53"}) || conf.ndots != 1 {
		t.Errorf("an empty file: %+v", conf)
	}
}

func TestDelay(t *testing.T) {
	r := &Resolver{minTTL: 5 * time.Second, maxTTL: time.Minute}
	for _, c := range []struct {
		w    watch
		ttl  time.Duration
		most time.Duration
	}{
		{watch{}, 0, 5 * time.Second},
		{watch{}, 30 * time.Second, 30 * time.Second},
		{watch{}, time.Hour, time.Minute},
		{watch{failures: 1}, time.Hour, time.Second},
		{watch{failures: 3}, time.Hour, 4 * time.Second},
		{watch{failures: 1000}, time.Hour, 30 * time.Second},
		{watch{fallen: true}, time.Hour, 5 * time.Second},
		{watch{hurried: time.Now()}, time.Hour, 5 * time.Second},
		{watch{hurried: time.Now().Add(-time.Hour)}, time.Hour, time.Minute},
	} {
		c.w.resolver = r
		differ := false
		for range 100 {
			d := c.w.delay(c.ttl)
			differ = differ || d != c.most
			if d > c.most || d < c.most*9/10-1 {
				t.Errorf("%+v with a TTL of %v: %v, want at most %v and little less", c.w, c.ttl, d, c.most)
			}
		}
		if !differ {
			t.Errorf("%+v: no jitter", c.w)
		}
	}
}

// Any message from a server results in an answer or an error.
func FuzzAnswer(f *testing.F) {
	name := dnsmessage.MustNewName("arith.test.")
	q := dnsmessage.Question{Name: name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET}
	h := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 1}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, Response: true}, Questions: []dnsmessage.Question{q},
		Answers: []dnsmessage.Resource{
			{Header: h, Body: &dnsmessage.SRVResource{Priority: 1, Weight: 2, Port: 3, Target: name}},
			{Header: h, Body: &dnsmessage.CNAMEResource{CNAME: name}},
		},
		Additionals: []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{1, 2, 3, 4}}}},
	}
	whole, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		header, ok := answers(data, 7, q)
		if !ok {
			return
		}
		r, err := read(header, data)
		if err != nil {
			return
		}
		final("arith.test.", r.answers)
		for _, a := range r.additionals {
			address(a)
		}
		if r.ttl < 0 {
			t.Errorf("a TTL of %v", r.ttl)
		}
	})
}
