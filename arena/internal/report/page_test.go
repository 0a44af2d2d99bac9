package report_test

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/result"
)

func TestPageLoadsNothing(t *testing.T) {
	page := read(t, written(t, sample()), "index.html")
	for _, load := range []string{`\ssrc\s*=`, `<link`, `<iframe`, `<object`, `<embed`, `<base`, `@import`, `url\(`, `\bfetch\(`, `XMLHttpRequest`, `\bimport\b`, `WebSocket`, `sendBeacon`, `\son[a-z]+\s*=\s*"`, `\sstyle\s*=\s*"`} {
		if found := regexp.MustCompile(load).FindString(page); found != "" {
			t.Errorf("the page has %q, which could load or run something", found)
		}
	}
}

// The policy allows one script and one style, and both are those in the page.
func TestPagePolicyNamesItsScript(t *testing.T) {
	page := read(t, written(t, hostileDocument()), "index.html")
	policy := html.UnescapeString(regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1])
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is not strict: %s", policy)
	}
	for _, pattern := range []string{`(?s)<script>(.*?)</script>`, `(?s)<style>(.*?)</style>`} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("%s: found %d times", pattern, len(found))
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(policy, "'sha256-"+hash+"'") {
			t.Errorf("%s: its hash is not in the policy", pattern)
		}
	}
}

func TestPageHasEverything(t *testing.T) {
	doc := sample()
	page := read(t, written(t, doc), "index.html")
	for _, r := range doc.Rows {
		if !strings.Contains(page, `"name":"`+r.Peer+`"`) || !strings.Contains(page, html.EscapeString(r.Settings)) {
			t.Fatalf("%s is not in the page with its settings", r.Peer)
		}
	}
	text := html.UnescapeString(page)
	for _, want := range []string{
		"go run ./arena run --suite full --rounds 3 --json results.json", "Linux 6.18", "24,576 MiB", "go1.26.8", "17.0.17", "none, a test made this up",
		"28 peers in 3 languages", "needs pkg:example, which is not installed", "Nagle's algorithm is on", "google.golang.org/protobuf v1.36.12",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

func TestPageEscapes(t *testing.T) {
	page := read(t, written(t, hostileDocument()), "index.html")
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d scripts, 2 are the page's own", n)
	}
	if strings.Contains(page, "<img") || strings.Contains(page, `"javascript:`) && strings.Contains(page, `"link":"javascript:`) {
		t.Error("text of the document became markup")
	}
}

// A thousand rows of a full run stay a page that can be mailed.
func TestPageOfAThousandRowsIsSmall(t *testing.T) {
	doc := sample()
	for i := 0; len(doc.Rows) < 1000; i++ {
		r := doc.Rows[i]
		r.Shape.Callers += 7
		doc.Rows = append(doc.Rows, r)
	}
	if size := len(read(t, written(t, doc), "index.html")); size > 1_500_000 {
		t.Errorf("%d bytes", size)
	}
}

// What could not be measured is empty, not zero, and numbers that JSON cannot hold do no harm.
func TestPageKeepsUnknownFiguresEmpty(t *testing.T) {
	doc := sample()
	doc.Rows = doc.Rows[:1]
	doc.Rows[0].Figures = result.Figures{CallsPerSecond: 12_345.678, WireBytes: new(float64)}
	*doc.Rows[0].WireBytes = 1 / zero
	page := read(t, written(t, doc), "index.html")
	values := regexp.MustCompile(`"values":\[([^\]]*)\]`).FindStringSubmatch(page)
	if values == nil || !strings.HasPrefix(values[1], "12346,null,null,null,null,") || strings.Contains(values[1], "Inf") {
		t.Errorf("values are %v", values)
	}
}

var zero float64
