package target_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var post = target.Kind{Name: "post", Port: "25", Server: "office", Login: "Stamp"}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s = %v, want %s", what, err, want)
	}
}

func TestCheck(t *testing.T) {
	if err := post.Check(parse(t, "post://h:25/arith")); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"mail://h:25/arith":        `target "mail://h:25/arith" is not one of post: use post://host:25/service`,
		"post://me:secret@h:25/a":  `target "post://me:xxxxx@h:25/a" has a user in it, which would appear in logs: use the option post.Stamp`,
		"post://h:25/arith?ttl=3s": `target "post://h:25/arith?ttl=3s" has a query or fragment, which has no meaning here: use options of post.Dial`,
		"post://h:25/arith#end":    `target "post://h:25/arith#end" has a query or fragment, which has no meaning here: use options of post.Dial`,
	} {
		wantError(t, text, post.Check(parse(t, text)), want)
	}
}

func TestServers(t *testing.T) {
	servers, err := post.Servers(&url.URL{Scheme: "post", Host: "h1:25,h2:26", Path: "/arith"})
	if want := []string{"h1:25", "h2:26"}; err != nil || !slices.Equal(servers, want) {
		t.Errorf("Servers = %q, %v; want %q", servers, err, want)
	}
	_, err = post.Servers(&url.URL{Scheme: "post", Host: "h1:25,h2", Path: "/arith"})
	wantError(t, "Servers", err, `target "post://h1:25,h2/arith" has a bad office: post office "h2" is not host:port: use for example 127.0.0.1:25`)
	wantError(t, "CheckServers", post.CheckServers(nil), "no post office: give one, for example 127.0.0.1:25")
	for _, server := range []string{"", "h", ":25", "h:", "h:25:26"} {
		if err := post.CheckServer(server); err == nil {
			t.Errorf("%q is taken for host:port", server)
		}
	}
}

func TestPath(t *testing.T) {
	odd := errors.New("has an odd prefix")
	check := func(prefix string) error {
		if strings.Contains(prefix, "odd") {
			return odd
		}
		return nil
	}
	for text, want := range map[string][2]string{
		"post://h:25/arith":        {"/mail", "arith"},
		"post://h:25//arith":       {"/mail", "arith"},
		"post://h:25/a/b/arith":    {"/a/b", "arith"},
		"post://h:25/a//arith":     {"/a", "arith"},
		"post://h:25/a/b/arith.v2": {"/a/b", "arith.v2"},
	} {
		prefix, service, err := post.Path(parse(t, text), "/mail", check)
		if err != nil || prefix != want[0] || service != want[1] {
			t.Errorf("Path(%s) = %q, %q, %v; want %q", text, prefix, service, err, want)
		}
	}
	for text, want := range map[string]string{
		"post://h:25":             `target "post://h:25" names no service: use post://host:25/service`,
		"post://h:25/a/":          `target "post://h:25/a/" names no service: use post://host:25/service`,
		"post://h:25/odd/ar%20th": `target "post://h:25/odd/ar%20th" has an odd prefix`,
		"post://h:25/ar%20th":     `target "post://h:25/ar%20th" names a bad service: ` + registry.CheckService("ar th").Error(),
	} {
		_, _, err := post.Path(parse(t, text), "/mail", check)
		wantError(t, text, err, want)
	}
}

func TestPair(t *testing.T) {
	for text, want := range map[string][2]string{
		"post://h:25/arith":   {"main", "arith"},
		"post://h:25/a/arith": {"a", "arith"},
		"post://h:25//arith":  {"", "arith"},
	} {
		scope, service, err := post.Pair(parse(t, text), "street", "main")
		if err != nil || scope != want[0] || service != want[1] {
			t.Errorf("Pair(%s) = %q, %q, %v; want %q", text, scope, service, err, want)
		}
	}
	for text, want := range map[string]string{
		"post://h:25/a/b/arith": `target "post://h:25/a/b/arith" has 3 parts in its path: use post://host:25/street/service`,
		"post://h:25":           `target "post://h:25" names a bad service: ` + registry.CheckService("").Error(),
	} {
		_, _, err := post.Pair(parse(t, text), "street", "main")
		wantError(t, text, err, want)
	}
}
