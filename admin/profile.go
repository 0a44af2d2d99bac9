package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/printable"
)

// maxProfile bounds how long a profile of the processor or a trace runs.
const maxProfile = 5 * time.Minute

// serveProfile serves debug/pprof/, as package net/http/pprof does. That package is not used: it
// would also add its handlers to http.DefaultServeMux, which the program may serve elsewhere.
func (p *Page) serveProfile(w http.ResponseWriter, r *http.Request, path string) {
	name, ok := strings.CutPrefix(path, "pprof")
	if name = strings.TrimPrefix(name, "/"); !ok {
		http.NotFound(w, r)
		return
	}
	switch name {
	case "":
		if formOf(r) == "html" && strings.HasSuffix(path, "/") {
			p.view(&profilesPage, p.document(0, bounds{}), []section{profilesSection()}).serveHTML(w)
			return
		}
		serveProfiles(w)
	case "profile":
		serveFor(w, r, "cpu.pprof", func(b *bytes.Buffer) (func(), error) { return pprof.StopCPUProfile, pprof.StartCPUProfile(b) })
	case "trace":
		serveFor(w, r, "trace.out", func(b *bytes.Buffer) (func(), error) { return trace.Stop, trace.Start(b) })
	default:
		serveOne(w, r, name)
	}
}

// profilesPage is the list of profiles in a browser.
var profilesPage = page{path: "debug/pprof/", title: "Profiles"}

func profilesSection() section {
	s := section{
		Title: "Profiles for go tool pprof", Note: "go tool pprof takes the address of a profile too; a profile that runs for a while is downloaded at its end.",
		Columns: columns("Profile", ">Entries", "As text"),
	}
	for _, one := range profiles() {
		name := one.Name()
		s.Rows = append(s.Rows, []cell{{Text: name, Link: name}, plain(fmt.Sprint(one.Count())), {Text: "show", Link: name + "?debug=1"}})
	}
	s.Rows = append(s.Rows,
		[]cell{{Text: "processor, for 10 s", Link: "profile?seconds=10"}, plain(""), plain("")},
		[]cell{{Text: "trace of 1 s, for go tool trace", Link: "trace?seconds=1"}, plain(""), plain("")})
	return s
}

// profiles returns the profiles by name.
func profiles() []*pprof.Profile {
	return slices.SortedFunc(slices.Values(pprof.Profiles()), func(a, b *pprof.Profile) int { return strings.Compare(a.Name(), b.Name()) })
}

func serveProfiles(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "Profiles of this process, for \"go tool pprof URL\"; ?debug=1 shows one as text.")
	fmt.Fprintln(w)
	for _, one := range profiles() {
		fmt.Fprintf(w, "%8d  debug/pprof/%s\n", one.Count(), one.Name())
	}
	fmt.Fprintln(w, "          debug/pprof/profile?seconds=10  of the processor")
	fmt.Fprintln(w, "          debug/pprof/trace?seconds=1     for \"go tool trace\"")
}

func serveOne(w http.ResponseWriter, r *http.Request, name string) {
	one := pprof.Lookup(name)
	if one == nil {
		http.Error(w, fmt.Sprintf("404 there is no profile %.40q: debug/pprof/ lists them", printable.Text(name)), http.StatusNotFound)
		return
	}
	level, _ := strconv.Atoi(r.URL.Query().Get("debug"))
	var b bytes.Buffer
	if err := one.WriteTo(&b, min(max(level, 0), 2)); err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	if level > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		download(w, one.Name()+".pprof")
	}
	w.Write(b.Bytes())
}

// serveFor serves what start records for a while. It can be used by one viewer at a time.
func serveFor(w http.ResponseWriter, r *http.Request, name string, start func(*bytes.Buffer) (stop func(), err error)) {
	bound := 10 * time.Second
	if name == "trace.out" {
		bound = time.Second
	}
	if text := r.URL.Query().Get("seconds"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0 && n <= maxProfile.Seconds()) {
			http.Error(w, fmt.Sprintf("400 seconds=%.40q: want a number above 0 and up to %v", text, maxProfile.Seconds()), http.StatusBadRequest)
			return
		}
		bound = time.Duration(n * float64(time.Second))
	}
	var b bytes.Buffer
	stop, err := start(&b)
	if err != nil {
		http.Error(w, "503 "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	select {
	case <-time.After(bound):
	case <-r.Context().Done():
	}
	stop()
	limitAnswer(w) // the profile may have taken longer than the limit
	download(w, name)
	w.Write(b.Bytes())
}

func download(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}
