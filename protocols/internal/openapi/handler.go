package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
	"github.com/anser-rpc/anser/protocols/internal/plain"
)

// The paths that are served.
const (
	Path     = "/openapi.json"
	PagePath = "/openapi"
)

// Handler serves the document of a server and its page. The document tells each caller of the
// methods that it may call. It is safe for concurrent use.
type Handler struct {
	methods *exchange.Directory
	routes  *plain.Routes
	info    Info

	mu      sync.Mutex // guards the fields below
	catalog *catalog
	made    []*made // the last one used is the last
}

// maxMade is the number of documents that are kept: one for each set of methods that callers may
// call.
const maxMade = 16

// made is a document.
type made struct {
	key  [sha256.Size]byte // of what it was made from
	tag  string
	data []byte
	gzip []byte
}

// New returns a handler for the methods of a server.
func New(methods *exchange.Directory, routes *plain.Routes, info Info) *Handler {
	if info.Title == "" {
		info.Title = "Services"
	}
	if info.Version == "" {
		info.Version = "0"
	}
	return &Handler{methods: methods, routes: routes, info: info}
}

// Serves reports whether the path is one of the handler's.
func (h *Handler) Serves(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return (path == Path || path == PagePath) && h.methods.Server().Describes()
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 use GET", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.EscapedPath() == PagePath {
		servePage(w, r)
		return
	}
	h.serveDocument(w, r)
}

func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request) {
	c := host.FromContext(r.Context())
	pc, fault := c.Login(r.Header.Get("Authorization"))
	var list []anser.MethodType
	if fault == nil {
		list, fault = pc.ListMethods()
	}
	if fault != nil {
		exchange.Fail(w, fault)
		return
	}
	d, err := h.document(list, c.Peer.TLS != nil)
	if err != nil {
		exchange.Fail(w, anser.Errorf(anser.Internal, "describe the methods: %v", err))
		return
	}
	head := w.Header()
	head.Set("Vary", "Accept-Encoding, Authorization")
	head.Set("Cache-Control", "no-cache")
	if h.methods.Server().Authenticates() {
		head.Set("Cache-Control", "private, no-cache")
	}
	head.Set("ETag", d.tag)
	head.Set("Content-Type", typeJSON)
	head.Set("X-Content-Type-Options", "nosniff")
	if exchange.Matches(r.Header.Values("If-None-Match"), d.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data := d.data
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		data = d.gzip
	}
	head.Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data)
}

// document returns the document of these methods. Of several callers one makes it.
func (h *Handler) document(list []anser.MethodType, tls bool) (*made, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if version := h.methods.Server().MethodsVersion(); h.catalog == nil || h.catalog.version != version {
		c, err := build(h.methods, h.routes)
		if err != nil {
			return nil, err
		}
		h.catalog, h.made = c, nil
	}
	allowed := make(map[string]bool)
	sum := sha256.New()
	io.WriteString(sum, strconv.FormatBool(tls))
	for _, m := range list {
		allowed[m.Name] = true
		io.WriteString(sum, " "+m.Name)
	}
	key := [sha256.Size]byte(sum.Sum(nil))
	for i, d := range h.made {
		if d.key == key {
			h.made = append(append(h.made[:i:i], h.made[i+1:]...), d)
			return d, nil
		}
	}
	d, err := h.make(key, &view{
		may: func(name string) bool { return allowed[name] }, authenticated: h.methods.Server().Authenticates(), tls: tls,
		info: h.info, maxMessage: h.methods.Server().MaxMessageSize(),
	})
	if err != nil {
		return nil, err
	}
	if h.made = append(h.made, d); len(h.made) > maxMade {
		h.made = h.made[1:]
	}
	return d, nil
}

func (h *Handler) make(key [sha256.Size]byte, v *view) (*made, error) {
	data, err := h.catalog.render(v)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(data)
	if err := z.Close(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"` // the same with and without gzip
	return &made{key: key, tag: tag, data: data, gzip: packed.Bytes()}, nil
}
