package kubernetes_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// fakeServer is the part of an API server that this package uses, over TLS and HTTP/2: versions of
// all objects from one counter, conflicts, preconditions, watches that begin at a version, 410
// Gone for versions that are compacted. It checks the token but does not validate objects; the
// tests on a real server do.
type fakeServer struct {
	http *httptest.Server

	mu        sync.Mutex // guards the fields below
	away      bool
	conns     map[net.Conn]bool
	version   int64
	forgotten int64 // watches from before this version are 410 Gone
	objects   map[string]stored
	events    []event
	changed   chan struct{} // closed and replaced with each event
	forbidden map[string]bool
	stutter   bool // the first attempt of each write is carried out, but answered with 504
	starting  bool // everything is forbidden, as before the roles are loaded
	lists     int  // list requests, not counting watches
}

// stored is the JSON of an object, with its metadata decoded.
type stored struct {
	key  string // resource/namespace/name
	meta metav1.ObjectMeta
	json map[string]any
}

type event struct {
	version  int64
	old, now *stored // nil if there is none
}

const fakeToken = "a-token"

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{
		conns: make(map[net.Conn]bool), objects: make(map[string]stored), forbidden: make(map[string]bool), changed: make(chan struct{}),
	}
	s.http = httptest.NewUnstartedServer(s)
	s.http.Listener = &fakeListener{s.http.Listener, s}
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	t.Cleanup(func() { s.stop(); s.http.Close() })
	return s
}

func (s *fakeServer) config() *rest.Config {
	return &rest.Config{Host: s.http.URL, BearerToken: fakeToken, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw}),
	}}
}

// fakeListener keeps its port while the server is down, so that no other process takes it.
type fakeListener struct {
	net.Listener
	server *fakeServer
}

func (l *fakeListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		own := &fakeConn{c, l.server}
		l.server.mu.Lock()
		away := l.server.away
		if !away {
			l.server.conns[own] = true
		}
		l.server.mu.Unlock()
		if !away {
			return own, nil
		}
		c.Close()
	}
}

type fakeConn struct {
	net.Conn
	server *fakeServer
}

func (c *fakeConn) Close() error {
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
	return c.Conn.Close()
}

func (s *fakeServer) stop() {
	s.mu.Lock()
	s.away = true
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

func (s *fakeServer) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

// forget makes every watch end with 410 Gone, including new ones that begin at an old version.
func (s *fakeServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.forgotten = s.version
	s.events = nil
	s.wakeLocked()
}

func (s *fakeServer) forbid(what ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range what {
		s.forbidden[w] = true
	}
}

func (s *fakeServer) setStarting(starting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = starting
}

func (s *fakeServer) isStarting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starting
}

func (s *fakeServer) openConns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *fakeServer) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *fakeServer) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

var fakeKinds = map[string]struct{ kind, version string }{
	"configmaps":     {"ConfigMap", "v1"},
	"endpointslices": {"EndpointSlice", "discovery.k8s.io/v1"},
	"leases":         {"Lease", "coordination.k8s.io/v1"},
}

// request is one request with its path and selectors decoded.
type request struct {
	*http.Request
	w                         http.ResponseWriter
	resource, namespace, name string
	labels                    labels.Selector
	fields                    fields.Selector
}

func (r *request) key(name string) string { return r.resource + "/" + r.namespace + "/" + name }

func (r *request) matches(o *stored) bool {
	return o != nil && strings.HasPrefix(o.key, r.key("")) && r.labels.Matches(labels.Set(o.meta.Labels)) &&
		r.fields.Matches(fields.Set{"metadata.name": o.meta.Name, "metadata.namespace": o.meta.Namespace})
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	r := &request{Request: hr, w: w}
	path := strings.TrimPrefix(hr.URL.Path, "/")
	for name, kind := range fakeKinds {
		prefix := "apis/"
		if kind.version == "v1" {
			prefix = "api/"
		}
		if rest, ok := strings.CutPrefix(path, prefix+kind.version+"/namespaces/"); ok {
			parts := append(strings.Split(rest, "/"), "")
			if parts[1] == name {
				r.resource, r.namespace, r.name = name, parts[0], parts[2]
			}
		}
	}
	if hr.Header.Get("Authorization") != "Bearer "+fakeToken {
		r.fail(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	if path == "readyz" {
		if s.isStarting() {
			r.fail(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}
		return
	}
	var err1, err2 error
	r.labels, err1 = labels.Parse(hr.URL.Query().Get("labelSelector"))
	r.fields, err2 = fields.ParseSelector(hr.URL.Query().Get("fieldSelector"))
	if r.resource == "" || err1 != nil || err2 != nil {
		r.fail(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	watching := hr.URL.Query().Get("watch") == "true"
	verb := strings.ToLower(hr.Method)
	if watching {
		verb = "watch"
	} else if verb == "get" && r.name == "" {
		verb = "list"
	}
	s.mu.Lock()
	forbidden := s.forbidden[verb+" "+r.resource] || s.starting
	s.mu.Unlock()
	switch {
	case forbidden:
		r.fail(http.StatusForbidden, metav1.StatusReasonForbidden)
	case watching:
		s.watch(r)
	case verb == "list":
		s.list(r)
	default:
		if hr.Method != http.MethodGet && s.takeStutter() {
			s.serveObject(&request{Request: hr, w: httptest.NewRecorder(), resource: r.resource, namespace: r.namespace, name: r.name, labels: r.labels, fields: r.fields})
			w.Header().Set("Retry-After", "1")
			r.fail(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
			return
		}
		s.serveObject(r)
	}
}

func (s *fakeServer) setStutter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stutter = true
}

func (s *fakeServer) takeStutter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.stutter
	s.stutter = false
	return was
}

func (r *request) answer(code int, v any) {
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(code)
	json.NewEncoder(r.w).Encode(v)
}

func (r *request) fail(code int, reason metav1.StatusReason) {
	r.answer(code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("%s %s: %s", r.Method, r.URL.Path, reason),
	})
}

func (s *fakeServer) list(r *request) {
	kind := fakeKinds[r.resource]
	s.mu.Lock()
	items := []any{}
	for _, o := range s.objects {
		if r.matches(&o) {
			items = append(items, o.json)
		}
	}
	s.lists++
	version := fmt.Sprint(s.version)
	s.mu.Unlock()
	r.answer(http.StatusOK, map[string]any{
		"kind": kind.kind + "List", "apiVersion": kind.version, "metadata": map[string]any{"resourceVersion": version}, "items": items,
	})
}

func (s *fakeServer) watch(r *request) {
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(http.StatusOK)
	from, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		return
	}
	out := json.NewEncoder(r.w)
	say := func(kind string, object any) { out.Encode(map[string]any{"type": kind, "object": object}) }
	for {
		s.mu.Lock()
		gone, changed := from < s.forgotten, s.changed
		var news []event
		for _, e := range s.events {
			if e.version > from {
				news = append(news, e)
			}
		}
		s.mu.Unlock()
		if gone {
			say("ERROR", metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
			})
			return
		}
		for _, e := range news {
			from = e.version
			switch was, is := r.matches(e.old), r.matches(e.now); {
			case is && was:
				say("MODIFIED", e.now.json)
			case is:
				say("ADDED", e.now.json)
			case was:
				say("DELETED", e.old.json)
			}
		}
		r.w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// serveObject serves requests for one object, and the deletion of many.
func (s *fakeServer) serveObject(r *request) {
	var body struct {
		Metadata      metav1.ObjectMeta     `json:"metadata"`
		Preconditions *metav1.Preconditions `json:"preconditions"`
	}
	var object map[string]any
	if r.Method != http.MethodGet {
		var raw json.RawMessage
		err := json.NewDecoder(r.Body).Decode(&raw)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		if err == nil {
			err = json.Unmarshal(raw, &object)
		}
		if err != nil {
			r.fail(http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there, known := s.objects[r.key(r.name)]
	conflict := func(version string) bool { return version != "" && version != there.meta.ResourceVersion }
	switch {
	case r.Method == http.MethodPost:
		if _, twice := s.objects[r.key(body.Metadata.Name)]; twice {
			r.fail(http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return
		}
		r.answer(http.StatusCreated, s.putLocked(r, object, body.Metadata, nil))
	case r.Method == http.MethodDelete && r.name == "":
		for _, o := range s.objects {
			if r.matches(&o) {
				s.deleteLocked(o)
			}
		}
		r.answer(http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	case !known:
		r.fail(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodGet:
		r.answer(http.StatusOK, there.json)
	case r.Method == http.MethodPut && conflict(body.Metadata.ResourceVersion),
		r.Method == http.MethodDelete && body.Preconditions != nil && body.Preconditions.ResourceVersion != nil && conflict(*body.Preconditions.ResourceVersion):
		r.fail(http.StatusConflict, metav1.StatusReasonConflict)
	case r.Method == http.MethodPut:
		r.answer(http.StatusOK, s.putLocked(r, object, body.Metadata, &there))
	default:
		s.deleteLocked(there)
		r.answer(http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}
}

// putLocked stores the object under its next version and returns it.
func (s *fakeServer) putLocked(r *request, object map[string]any, meta metav1.ObjectMeta, old *stored) map[string]any {
	s.version++
	meta.ResourceVersion, meta.Namespace = fmt.Sprint(s.version), r.namespace
	fields := object["metadata"].(map[string]any)
	fields["resourceVersion"], fields["namespace"] = meta.ResourceVersion, meta.Namespace
	if old == nil {
		fields["uid"] = fmt.Sprintf("uid-%d", s.version)
	} else {
		fields["uid"] = old.json["metadata"].(map[string]any)["uid"]
	}
	object["kind"], object["apiVersion"] = fakeKinds[r.resource].kind, fakeKinds[r.resource].version
	now := stored{key: r.key(meta.Name), meta: meta, json: object}
	s.objects[now.key] = now
	s.events = append(s.events, event{s.version, old, &now})
	s.wakeLocked()
	return object
}

func (s *fakeServer) deleteLocked(o stored) {
	s.version++
	delete(s.objects, o.key)
	s.events = append(s.events, event{s.version, &o, nil})
	s.wakeLocked()
}
