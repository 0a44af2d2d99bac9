package admin

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/internal/redact"
	"github.com/anser-rpc/anser/telemetry"
)

// A page is one page in all its forms.
type page struct {
	path  string
	title string
	parts parts
	build func(d *Document, q url.Values) []section
}

// pages are the pages of the navigation, in its order.
var pages = [...]page{
	{"", "Overview", ofMethods | ofServers | ofClients | ofFailures, overview},
	{"methods", "Methods", ofMethods | ofServers | ofServed, methodsPage},
	{"connections", "Connections", ofServers | ofClients | ofConns, connectionsPage},
	{"streams", "Streams", ofServers | ofClients | ofStreams, streamsPage},
	{"clients", "Clients", ofClients | ofMethods, clientsPage},
	{"registries", "Registries and rules", ofServers | ofClients | ofRules, registriesPage},
	{"failures", "Failures", ofFailures, failuresPage},
	{"slow", "Slow calls", ofSlow, slowPage},
	{"options", "Options", ofServers | ofClients | ofOptions, optionsPage},
}

// hidden are pages to which others have links.
var hidden = [...]page{
	{"method", "Method", ofMethods | ofServers | ofServed, methodPage},
	{"trace", "Trace", ofTrace, tracePage},
	{"all", "Everything", everything, nil},
}

// others are paths of the page that are not made from a document.
var others = [...]string{"index", "calls", "figures", "flight", "debug"}

func isPage(name string) bool {
	return find(name) != nil || slices.Contains(others[:], name)
}

func find(name string) *page {
	for i := range pages {
		if pages[i].path == name {
			return &pages[i]
		}
	}
	for i := range hidden {
		if hidden[i].path == name {
			return &hidden[i]
		}
	}
	return nil
}

//go:embed assets
var assets embed.FS

// ServeHTTP serves the page. Its links are relative: it works below any path that ends with a
// slash, behind http.StripPrefix.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if !p.made() {
		http.Error(w, "500 "+errNotMade.Error(), http.StatusInternalServerError)
		return
	}
	if no := p.refuse(r); no != nil {
		if no.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="admin page, with the token as password", charset="UTF-8"`)
		}
		http.Error(w, fmt.Sprint(no.status, " ", no.text), no.status)
		return
	}
	if r.URL.Path == "" { // relative links need the slash
		if u, err := url.ParseRequestURI(r.RequestURI); err == nil && path.Base(u.Path) != "/" {
			w.Header().Set("Location", path.Base(u.EscapedPath())+"/")
			w.WriteHeader(http.StatusFound)
			return
		}
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		http.Error(w, fmt.Sprintf("503 the admin page serves %d requests already: try again later", cap(p.places)), http.StatusServiceUnavailable)
		return
	}
	limitAnswer(w)
	name, rest := split(r)
	switch {
	case name == "debug":
		p.serveProfile(w, r, rest)
	case name == "flight":
		p.serveFlight(w, r, rest)
	case rest != "":
		http.NotFound(w, r)
	case slices.Contains(files[:], name):
		http.ServeFileFS(w, r, assets, "assets/"+name)
	default:
		p.servePage(w, r, name)
	}
}

// pageBound limits how long a viewer may take to read an answer, and maxViewers how many answers
// are made at a time: viewers that read slowly hold no more memory than that.
const (
	pageBound  = time.Minute
	maxViewers = 64
)

// limitAnswer limits the time of an answer from now on. Not every transport can: then its own
// limits apply.
func limitAnswer(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pageBound))
}

// files are the assets that pages load.
var files = [...]string{"style.css", "page.js", "calls.js", "icon.svg"}

// split returns the first element of the path of a request, and the rest.
func split(r *http.Request) (name, rest string) {
	name, rest, _ = strings.Cut(strings.TrimLeft(r.URL.Path, "/"), "/")
	return name, rest
}

// servePage serves a page in the form that its suffix or the request asks for.
func (p *Page) servePage(w http.ResponseWriter, r *http.Request, name string) {
	form := formOf(r)
	if base, ext, ok := strings.Cut(name, "."); ok {
		name, form = base, ext
	}
	if name == "index" {
		name = ""
	}
	if name == "calls" {
		p.serveCalls(w, r, form)
		return
	}
	if name == "figures" && form == "json" {
		p.serveFigures(w, r)
		return
	}
	if h := p.o.handlers[name]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	at := find(name)
	if at == nil {
		http.Error(w, "404 the admin page has no such page: see its overview", http.StatusNotFound)
		return
	}
	switch form {
	case "json":
	case "html", "txt":
		if at.build == nil {
			http.Error(w, "404 use all.json", http.StatusNotFound)
			return
		}
	default:
		http.Error(w, fmt.Sprintf("404 no page has the form %.40q: use .html, .txt or .json", form), http.StatusNotFound)
		return
	}
	var most bounds
	for name, n := range map[string]*int{"conns": &most.conns, "streams": &most.streams} {
		var ok bool
		text := r.URL.Query().Get(name)
		if *n, ok = listed(text); !ok {
			http.Error(w, fmt.Sprintf("400 %s=%.40q: want a number from 0 to %d", name, text, maxListed), http.StatusBadRequest)
			return
		}
	}
	trace := r.URL.Query().Get("id")
	if at.parts == ofTrace && !isTraceID(trace) {
		http.Error(w, fmt.Sprintf("400 id=%.40q: want the 32 digits of hexadecimal of a trace", trace), http.StatusBadRequest)
		return
	}
	if at.parts != ofTrace {
		p.await(r)
	}
	doc := p.document(at.parts, most)
	if at.parts == ofTrace {
		doc.Trace = listOf(p.meter.Trace(trace), 0)
	}
	doc.clean()
	if form == "json" {
		w.Header().Set("Content-Type", "application/json")
		text, err := json.MarshalIndent(doc, "", " ")
		if err != nil {
			http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Write(append(printable.JSON(text), '\n'))
		return
	}
	v := p.view(at, doc, at.build(doc, r.URL.Query()))
	if form == "txt" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte(v.text()))
		return
	}
	v.serveHTML(w)
}

func (p *Page) view(at *page, doc *Document, sections []section) *view {
	for i := range sections {
		sections[i].prune()
	}
	return &view{Page: at, Doc: doc, Sections: sections, Extra: p.links()}
}

const (
	defaultListed = 100
	maxListed     = 100_000
)

// listed returns how many connections or streams a viewer asks for.
func listed(text string) (n int, ok bool) {
	if text == "" {
		return defaultListed, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= maxListed
}

// formOf returns the form that the header Accept asks for: "html", "json", or "txt" for curl.
func formOf(r *http.Request) string {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			switch kind, _, _ := strings.Cut(strings.TrimSpace(part), ";"); kind {
			case "text/html":
				return "html"
			case "application/json":
				return "json"
			case "text/plain":
				return "txt"
			case "text/event-stream":
				return "events"
			case "application/x-ndjson":
				return "ndjson"
			}
		}
	}
	return "txt"
}

// links returns the further links of the navigation.
func (p *Page) links() (list []link) {
	list = append(list, link{"calls", "Live calls"})
	if p.flight != nil {
		list = append(list, link{flightPage.path, flightPage.title})
	}
	list = append(list, link{profilesPage.path, profilesPage.title})
	own := len(list)
	for name := range p.o.handlers {
		list = append(list, link{name, strings.ToUpper(name[:1]) + name[1:]})
	}
	slices.SortFunc(list[own:], func(a, b link) int { return strings.Compare(a.Path, b.Path) })
	return list
}

type link struct{ Path, Title string }

// clean removes credentials from texts of errors, tags and addresses, which may have URLs with
// some. Targets have none.
func (d *Document) clean() {
	for i := range d.Methods {
		d.Methods[i].Slowest = cleanCall(d.Methods[i].Slowest)
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		c.Trouble = redact.URLs(c.Trouble)
		cleanConns(c.Connections, c.OpenStreams)
		for j := range c.Overrides {
			o := &c.Overrides[j]
			o.Methods, o.When, o.By = redact.URLs(o.Methods), redact.URLs(o.When), redact.URLs(o.By)
		}
		if c.Rules != nil {
			c.Rules.Trouble = redact.URLs(c.Rules.Trouble)
			if text := redact.URLs(string(c.Rules.Text)); json.Valid([]byte(text)) {
				c.Rules.Text = json.RawMessage(text)
			}
		}
		for j := range c.Instances {
			in := &c.Instances[j]
			in.Why, in.Tags, in.Address = redact.URLs(in.Why), cleanTags(in.Tags), redact.Target(in.Address)
		}
	}
	for i := range d.Servers {
		for j := range d.Servers[i].Announcements {
			a := &d.Servers[i].Announcements[j]
			a.Trouble, a.Instance.Tags, a.Instance.Address = redact.URLs(a.Trouble), cleanTags(a.Instance.Tags), redact.Target(a.Instance.Address)
		}
	}
	for _, list := range []*Calls{d.Failures, d.Slow, d.Trace} {
		if list != nil {
			for i := range list.Calls {
				list.Calls[i] = cleanCall(list.Calls[i])
			}
		}
	}
}

// cleanTags returns tags without credentials; the map itself belongs to the registry.
func cleanTags(tags map[string]string) map[string]string {
	var own map[string]string
	for name, value := range tags {
		if clean := redact.URLs(value); clean != value {
			if own == nil {
				own = maps.Clone(tags)
			}
			own[name] = clean
		}
	}
	if own == nil {
		return tags
	}
	return own
}

func cleanCall(c *telemetry.Call) *telemetry.Call {
	if c == nil {
		return nil
	}
	dirty := func(a anser.AttemptInfo) bool {
		return strings.Contains(a.Message, "@") || strings.Contains(a.Address, "@")
	}
	if !strings.Contains(c.Message, "@") && !strings.Contains(c.Peer, "@") && !slices.ContainsFunc(c.Attempts, dirty) {
		return c
	}
	own := *c
	own.Message, own.Peer, own.Attempts = redact.URLs(c.Message), redact.Target(c.Peer), slices.Clone(c.Attempts)
	for i := range own.Attempts {
		a := &own.Attempts[i]
		a.Message, a.Address = redact.URLs(a.Message), redact.Target(a.Address)
	}
	return &own
}

// cleanConns removes credentials from the addresses that a client has dialed.
func cleanConns(conns []Conn, streams []Stream) {
	for i := range conns {
		conns[i].Peer = redact.Target(conns[i].Peer)
	}
	for i := range streams {
		streams[i].Peer = redact.Target(streams[i].Peer)
	}
}
