package plain

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// Routes are the paths of the methods with the annotation google.api.http. They are made anew when
// methods were added to the server.
type Routes struct {
	methods *exchange.Directory

	mu  sync.Mutex // makes them once
	now atomic.Pointer[table]
}

// table is the routes of a version of the server's methods.
type table struct {
	version uint64
	router  transcode.Router[*Route]
	list    []*Route
}

// Route is a binding of a method.
type Route struct {
	*transcode.Binding
	Method *exchange.Method
}

// String returns the name of the method.
func (r *Route) String() string { return r.Method.Name }

// NewRoutes returns the routes of the methods of a server.
func NewRoutes(methods *exchange.Directory) *Routes { return &Routes{methods: methods} }

// List returns all routes in the order of the methods' names. It is shared and must not be changed.
func (t *Routes) List() []*Route { return t.table().list }

// Check returns what is wrong with the annotations of the methods: a rule that does not fit the
// messages, or two with the same path.
func (t *Routes) Check() error {
	_, err := t.build()
	return err
}

// table returns the routes of the methods that the server has now. Of the methods that were added
// after Check, those with mistakes have none.
func (t *Routes) table() *table {
	version := t.methods.Server().MethodsVersion()
	if now := t.now.Load(); now != nil && now.version == version {
		return now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now.Load(); now != nil && now.version == version {
		return now
	}
	made, _ := t.build() // CheckServer has told the mistakes
	t.now.Store(made)
	return made
}

// build makes the routes, and returns the mistakes in them.
func (t *Routes) build() (*table, error) {
	server := t.methods.Server()
	made := &table{version: server.MethodsVersion()}
	var wrong []error
	for _, m := range server.Methods() {
		method := t.methods.FindName(m.Name)
		if method == nil || method.Descriptor == nil || !method.Protobuf || method.Own {
			continue
		}
		if err := made.add(method); err != nil {
			wrong = append(wrong, fmt.Errorf("method %s: %w", m.Name, err))
		}
	}
	return made, errors.Join(wrong...)
}

// add adds the routes of a method.
func (t *table) add(m *exchange.Method) error {
	rules, err := transcode.Rules(m.Descriptor.Options())
	if len(rules) == 0 || err != nil {
		return err
	}
	request, reply := m.Input(), m.Output()
	if request == nil || reply == nil {
		return errors.New("its messages have no descriptors, which google.api.http needs")
	}
	for _, rule := range rules {
		b, err := transcode.Bind(rule, request, reply)
		if err == nil && m.ClientStream && !b.TakesBody() {
			err = fmt.Errorf("%s %s: the client sends several messages, which need a body", rule.Method, b.Template)
		}
		if err == nil && m.ClientStream && b.RawRequest() {
			err = fmt.Errorf("%s %s: google.api.HttpBody in a stream of the client is not served", rule.Method, b.Template)
		}
		r := &Route{b, m}
		if err == nil {
			err = t.router.Add(rule.Method, b.Template, r)
		}
		if err != nil {
			return err
		}
		t.list = append(t.list, r)
	}
	return nil
}
