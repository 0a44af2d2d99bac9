package report_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/result"
)

// What a person sees is tried in a real browser: the page's own script, with clicks and keys.
func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a browser")
	}
	b := startChromium(t)
	address := func(doc *result.Document) string {
		return "file://" + filepath.ToSlash(filepath.Join(written(t, doc), "index.html"))
	}
	page := address(sample())
	t.Run("first look", func(t *testing.T) { firstLook(t, b, page) })
	t.Run("address", func(t *testing.T) { addressIsState(t, b, page) })
	t.Run("filters", func(t *testing.T) { filters(t, b, page) })
	t.Run("sorting", func(t *testing.T) { sorting(t, b, page) })
	t.Run("keyboard", func(t *testing.T) { keyboard(t, b, page) })
	t.Run("colours", func(t *testing.T) { colours(t, b, page) })
	t.Run("widths", func(t *testing.T) { widths(t, b, page) })
	t.Run("best", func(t *testing.T) { bestInBrowser(t, b, address(bestDocument(true))) })
	t.Run("hostile", func(t *testing.T) { hostileIsText(t, b, address(hostileDocument())) })
	t.Run("empty", func(t *testing.T) {
		p := b.open(t, address(&result.Document{Schema: result.Schema}), 1000, 800, "light")
		p.fine()
	})
}

const (
	tablePeers = `Array.from(document.querySelectorAll("#table tbody tr[data-peer]"), (row) => row.dataset.peer)`
	chartPeers = `Array.from(document.querySelectorAll("#chart-%s g.row"), (row) => row.dataset.peer)`
	chartAbout = `Array.from(document.querySelectorAll("#chart-%s g.row"), (row) => row.getAttribute("aria-label"))`
)

func firstLook(t *testing.T, b *chromium, page string) {
	p := b.open(t, page, 1440, 900, "light")
	p.fine()
	if title := p.text("document.title"); !strings.Contains(title, "RPC frameworks") {
		t.Errorf("the title is %q", title)
	}
	for chart, want := range map[string][]string{
		"throughput": {"ceiling", "anser-go", "anser", "arpc-inline", "brpc"},
		"cpu":        {"ceiling", "anser-go", "anser", "arpc-inline", "brpc"},
		"latency":    {"ceiling", "anser-go", "anser", "arpc-inline", "brpc"},
		"memory":     {"brpc", "netrpc-protobuf", "netrpc-gob", "ceiling", "arpc-inline"},
	} {
		if got := p.strings(fmt.Sprintf(chartPeers, chart)); len(got) < 26 || !slices.Equal(got[:5], want) {
			t.Errorf("%s shows %v, not %v at first", chart, got, want)
		}
		names := p.strings(fmt.Sprintf(chartAbout, chart))
		if last := names[len(names)-1]; !strings.Contains(last, "hprose") || !strings.Contains(last, "invalid: 12 wrong replies") || strings.HasPrefix(last, "2") {
			t.Errorf("%s: the invalid row is not the last, without a rank: %s", chart, last)
		}
	}
	if names := p.strings(fmt.Sprintf(chartAbout, "throughput")); !slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "published-186,") && strings.Contains(name, "not measured here")
	}) {
		t.Errorf("the published row has a rank, or does not say what it is: %v", names)
	}
	if about := p.text(`document.getElementById("absent").textContent`); !strings.Contains(about, "thrift-java") {
		t.Errorf("a peer without a row here is not named: %s", about)
	}
	if n := p.text(`document.querySelectorAll(".curve svg").length`); n != "25" {
		t.Errorf("%s curves", n)
	}
	if tile := p.text(`document.querySelector("[data-tile=cpu]").textContent`); !strings.Contains(tile, "1st of 24") || !strings.Contains(tile, "the next, arpc-inline") {
		t.Errorf("the tile of CPU says %s", tile)
	}
}

// The state comes from the address, and goes into it.
func addressIsState(t *testing.T, b *chromium, page string) {
	p := b.open(t, page+"#language=java&sort=throughput", 1200, 900, "light")
	p.fine()
	want := []string{"dubbo-java", "motan", "dubbo-java-triple", "grpc-java"}
	if got := p.strings(tablePeers); !slices.Equal(got, want) {
		t.Errorf("the table has %v, not %v", got, want)
	}
	if got := p.strings(fmt.Sprintf(chartPeers, "throughput")); !slices.Equal(got, want) {
		t.Errorf("the chart has %v, not %v", got, want)
	}
	p.value(`new Promise((done) => { addEventListener("hashchange", done, { once: true }); location.hash = "workload=add&shape=c1-fresh&sort=p99&dir=desc&language=cpp,java"; }).then(() => 1)`, nil)
	if got := p.strings(tablePeers); len(got) != 8 || got[0] != "grpc-java" {
		t.Errorf("the table has %v", got)
	}
	p.value(`new Promise((done) => { addEventListener("hashchange", done, { once: true }); location.hash = "workload=none&shape=none&sort=none&language=none&q=%E0%A4%A&rows="; }).then(() => 1)`, nil)
	if got := p.strings(tablePeers); len(got) != 28 {
		t.Errorf("an address of nonsense shows %d rows, not the 28 of the first look", len(got))
	}
	p.fine()
}

func filters(t *testing.T, b *chromium, page string) {
	p := b.open(t, page, 1200, 900, "light")
	p.click(`#languages input[value="cpp"]`)
	if got := p.strings(fmt.Sprintf(chartPeers, "cpu")); !slices.Equal(got, []string{"brpc", "grpc-cpp-callback"}) {
		t.Errorf("the chart of C++ has %v", got)
	}
	if hash := p.text("location.hash"); hash != "#language=cpp" {
		t.Errorf("the address says %s", hash)
	}
	p.click(`#search`)
	p.write("GRPC callback")
	if got := p.strings(tablePeers); !slices.Equal(got, []string{"grpc-cpp-callback"}) {
		t.Errorf("the search finds %v", got)
	}
	p.write(" nothing of the kind")
	if text := p.text(`document.getElementById("table").textContent`); !strings.Contains(text, "No peer fits") {
		t.Errorf("an empty table says %q", text)
	}
	p.click(`#reset`)
	if got := p.strings(tablePeers); len(got) != 28 {
		t.Errorf("%d rows after a reset", len(got))
	}
	p.value(`(() => { const shape = document.getElementById("shape"); shape.value = "c5000-n2"; shape.dispatchEvent(new Event("change", { bubbles: true })); })()`, nil)
	if names := p.strings(fmt.Sprintf(chartAbout, "cpu")); !slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(name, "dubbo-go-triple") && strings.Contains(name, "connection refused")
	}) {
		t.Errorf("the row that failed does not say why: %v", names)
	}
	p.click(`[data-rows="all"]`)
	if got := p.strings(tablePeers); len(got) < 400 {
		t.Errorf("%d rows of every shape", len(got))
	}
	p.fine()
}

func sorting(t *testing.T, b *chromium, page string) {
	p := b.open(t, page, 1200, 900, "light")
	sorted := func() string {
		return p.text(`Array.from(document.querySelectorAll("#table th[aria-sort]"), (cell) => cell.querySelector("button").dataset.sort + " " + cell.getAttribute("aria-sort")).join()`)
	}
	for _, step := range []struct{ key, want, first string }{
		{"throughput", "throughput descending", "ceiling"},
		{"throughput", "throughput ascending", "dubbo-go-triple"},
		{"server-memory", "server-memory ascending", "brpc"},
		{"peer", "peer ascending", "anser"},
	} {
		p.click(fmt.Sprintf(`#table [data-sort=%q]`, step.key))
		got := p.strings(tablePeers)
		if sorted() != step.want || got[0] != step.first {
			t.Errorf("sorted by %s, %s is first: not %s with %s", sorted(), got[0], step.want, step.first)
		}
		if focus := p.text("document.activeElement.dataset.sort"); focus != step.key {
			t.Errorf("the focus went from the button of %s to %s", step.key, focus)
		}
		if last := got[len(got)-1]; last != "hprose" {
			t.Errorf("by %s the invalid row is not the last: %s", step.want, last)
		}
	}
	p.click(`#table tr[data-peer="motan"] .open-row`)
	if details := p.text(`document.querySelector("#table tr.details").textContent`); !strings.Contains(details, "motan2, netty 4") || !strings.Contains(details, "Disturbed in 1 of 3 rounds") {
		t.Errorf("the details say %s", details)
	}
	p.click(`#codec-table [data-sort="bytes"]`)
	if codec := p.text(`document.querySelector("#codec-table tbody tr").dataset.codec`); !strings.HasPrefix(codec, "protobuf") {
		t.Errorf("the smallest codec is %s", codec)
	}
	p.fine()
}

// The rows of a chart are one stop of the tab key, with arrows inside; Enter opens the row in the
// table.
func keyboard(t *testing.T, b *chromium, page string) {
	p := b.open(t, page, 1200, 900, "light")
	if n := p.text(`document.querySelectorAll("#chart-cpu [tabindex='0']").length`); n != "1" {
		t.Errorf("%s stops of the tab key in a chart", n)
	}
	p.value(`document.querySelector("#chart-cpu [tabindex='0']").focus()`, nil)
	p.press("ArrowDown")
	p.press("ArrowDown")
	if peer := p.text("document.activeElement.dataset.peer"); peer != "anser" {
		t.Errorf("two arrows down is %s", peer)
	}
	if tip := p.text(`document.getElementById("tip").hidden + document.getElementById("tip").textContent`); !strings.HasPrefix(tip, "falseanser") {
		t.Errorf("the tip is %s", tip)
	}
	if n := p.text(`document.querySelectorAll("g.row.lit[data-peer='anser']").length`); n != "4" {
		t.Errorf("the peer is shown in %s charts, not in all four", n)
	}
	p.press("Enter")
	if open := p.text(`document.activeElement.getAttribute("aria-expanded") + document.activeElement.closest("tr").dataset.peer`); open != "trueanser" {
		t.Errorf("Enter leads to %s", open)
	}
	p.fine()
}

func colours(t *testing.T, b *chromium, page string) {
	const background = `getComputedStyle(document.body).backgroundColor`
	light, dark := "rgb(244, 245, 247)", "rgb(13, 17, 23)"
	if got := b.open(t, page, 1200, 900, "light").text(background); got != light {
		t.Errorf("light is %s", got)
	}
	p := b.open(t, page, 1200, 900, "dark")
	if got := p.text(background); got != dark {
		t.Errorf("dark is %s", got)
	}
	p.click(`#theme [data-pick="light"]`)
	if got := p.text(background); got != light {
		t.Errorf("light, chosen, is %s", got)
	}
	p.click(`#theme [data-pick="auto"]`) // for the tests that follow
	if got := p.text(background); got != dark {
		t.Errorf("dark, of the system, is %s", got)
	}
	p.fine()
}

// Nothing but the boxes made for it is wider than the window.
func widths(t *testing.T, b *chromium, page string) {
	for _, width := range []int{360, 480, 768, 1024, 1440, 1800} {
		p := b.open(t, page, width, 900, "light")
		if got := p.text("document.documentElement.scrollWidth"); got != fmt.Sprint(width) {
			t.Errorf("in a window of %d pixels the page is %s wide", width, got)
		}
		var outside []string
		p.value(`Array.from(document.querySelectorAll("main svg text")).filter((node) => {
			const box = node.getBoundingClientRect();
			return box.width && (box.left < -1 || box.right > innerWidth + 1);
		}).map((node) => node.textContent)`, &outside)
		if len(outside) > 0 {
			t.Errorf("in a window of %d pixels these are cut: %v", width, outside)
		}
		if wide := p.strings(`Array.from(document.querySelectorAll(".tile, .card > figcaption, .filters > *")).filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.textContent)`); len(wide) > 0 {
			t.Errorf("in a window of %d pixels these do not fit their box: %v", width, wide)
		}
		p.fine()
	}
}

// Text of the document never becomes markup, wherever it is shown.
func hostileIsText(t *testing.T, b *chromium, page string) {
	p := b.open(t, page+"#rows=all", 1000, 800, "dark")
	p.value(`document.querySelectorAll("#table .open-row").forEach((button, index) => index < 40 && button.click())`, nil)
	p.value(`document.querySelectorAll("#chart-cpu g.row").forEach((row) => row.dispatchEvent(new PointerEvent("pointerenter", { pointerType: "mouse" })))`, nil)
	if n := p.text(`document.querySelectorAll("script").length + " " + document.querySelectorAll("img").length + " " + document.querySelectorAll("a[href^=javascript]").length`); n != "2 0 0" {
		t.Errorf("scripts, images and links with scripts: %s", n)
	}
	if text := p.text(`document.querySelector("#table tbody").textContent`); !strings.Contains(text, "<script>alert(1)</script>") {
		t.Error("the hostile name is not shown as it is")
	}
	p.fine()
}
