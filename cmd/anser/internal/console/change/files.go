package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/filetransfer"
	"github.com/anser-rpc/anser/internal/introspect"
	"github.com/anser-rpc/anser/registry"
)

// Limits of lists of files.
const (
	maxFiles    = 1000    // of an answer
	maxScanned  = 100_000 // entries of a folder that a filter looks at
	maxFilePath = 4096    // bytes, as in package filetransfer
)

// folder is a folder that a service serves with package filetransfer, and what its clients may do.
type folder struct {
	// Name is what is before the dot of the methods. It is printable: a folder with another name
	// can do nothing, as no request can name it.
	Name   string `json:"name"`
	List   bool   `json:"list,omitempty"`
	Get    bool   `json:"get,omitempty"`
	Put    bool   `json:"put,omitempty"`
	Remove bool   `json:"remove,omitempty"`
}

// pathMessage and bytesMessage are the types of messages of package filetransfer, as servers
// describe them.
const (
	pathMessage  = "filetransfer.pathRequest"
	bytesMessage = "[]uint8"
)

// foldersOf returns the folders among the methods of a server.
func foldersOf(methods []anser.MethodInfo) []folder {
	by := make(map[string]*folder)
	for i := range methods {
		m := &methods[i]
		name, op := introspect.SplitName(m.Name)
		var f folder
		switch {
		case op == filetransfer.OpList.String() && m.Stream && m.Request.Type == pathMessage:
			f.List = true
		case op == filetransfer.OpGet.String() && isBytes(m):
			f.Get = true
		case op == filetransfer.OpPut.String() && isBytes(m):
			f.Put = true
		case op == filetransfer.OpRemove.String() && !m.Stream && m.Request.Type == pathMessage:
			f.Remove = true
		default:
			continue
		}
		if by[name] == nil {
			by[name] = &folder{Name: name}
		}
		g := by[name]
		g.List, g.Get, g.Put, g.Remove = g.List || f.List, g.Get || f.Get, g.Put || f.Put, g.Remove || f.Remove
	}
	out := []folder{}
	for name, f := range by {
		// A folder can be listed and read, or takes files only.
		if !(f.List && f.Get) && (!f.Put || f.Get || f.List || f.Remove) {
			continue
		}
		if shown := model.Text(name); shown != name {
			if by[shown] != nil {
				continue // it would look like that one
			}
			f = &folder{Name: shown}
		}
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b folder) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// isBytes reports whether a method is a stream of bytes in both directions.
func isBytes(m *anser.MethodInfo) bool {
	return m.Stream && m.Request.Type == bytesMessage && m.Reply.Type == bytesMessage
}

// foldersAnswer is the answer of api/files/{service}.
type foldersAnswer struct {
	Instance string   `json:"instance"` // that was asked
	Folders  []folder `json:"folders"`
}

// fileEntry is an entry of a folder.
type fileEntry struct {
	Name string `json:"name"` // printable
	// Path is what further requests name it by. It is empty if no request can.
	Path  string    `json:"path,omitempty"`
	Size  int64     `json:"size"` // in bytes; 0 unless it is a file
	Time  time.Time `json:"time"`
	Dir   bool      `json:"dir,omitempty"`
	Other bool      `json:"other,omitempty"` // neither a file nor a folder
}

// filesAnswer is the answer of api/files/{service}/{name}.
type filesAnswer struct {
	Instance string      `json:"instance"`
	Entries  []fileEntry `json:"entries"` // in the order of the service
	More     bool        `json:"more,omitempty"`
}

// opened is a connection to the instance whose files a request names.
type opened struct {
	client         *anser.Client
	service, name  string
	path, instance string
	folders        []folder
	can            folder // what the named folder can do
}

// fileOptions are the options of all operations.
func (o *opened) options(more ...filetransfer.Option) []filetransfer.Option {
	return append(more, filetransfer.Named(o.name))
}

// method returns the name of the method of an operation.
func (o *opened) method(op filetransfer.Op) string { return o.name + "." + op.String() }

// openFiles connects to an instance and asks what it serves: the one that the request names, or the
// first one that callers reach. Instances may have different files, so that requests of a page must
// not be spread over them.
func (c *Changes) openFiles(ctx context.Context, r *http.Request) (*opened, error) {
	q := r.URL.Query()
	o := &opened{service: r.PathValue("service"), name: r.PathValue("name"), path: q.Get("path")}
	if err := checkService(o.service); err != nil {
		return nil, err
	}
	if len(o.path) > maxFilePath {
		return nil, mistake("the path of %d bytes is over the limit of %d", len(o.path), maxFilePath)
	}
	in, err := c.pickInstance(ctx, o.service, q.Get("instance"))
	if err != nil {
		return nil, err
	}
	o.instance = in.Key()
	if o.client, err = c.d.Dial(in.Address); err != nil {
		return nil, asMistake(err)
	}
	methods, err := introspect.Methods(ctx, o.client)
	if err != nil {
		o.client.Close()
		return nil, &respond.Error{
			Status: http.StatusBadGateway, Text: model.Text(fmt.Sprintf("%s does not say what it serves: %v", o.instance, err)),
			Advice: "look at the instance, or choose another one",
		}
	}
	o.folders = foldersOf(methods)
	return o, nil
}

// pickInstance returns the named instance, or the first one that callers reach.
func (c *Changes) pickInstance(ctx context.Context, service, key string) (registry.Instance, error) {
	list, err := registry.List(ctx, c.d.Registry, service)
	if err != nil {
		return registry.Instance{}, err
	}
	slices.SortFunc(list, func(a, b registry.Instance) int { return cmp.Compare(a.Key(), b.Key()) })
	down := make(map[string]bool)
	if c.d.Figures != nil && key == "" {
		for _, f := range c.d.Figures(service) {
			down[f.Instance.ID] = f.Down
		}
	}
	at := slices.IndexFunc(list, func(in registry.Instance) bool {
		return in.Key() == key || key == "" && in.State == registry.Up && !down[in.Key()]
	})
	if at < 0 && key == "" && len(list) > 0 {
		at = 0 // none is better
	}
	if at < 0 {
		return registry.Instance{}, &respond.Error{
			Status: http.StatusNotFound, Text: strings.TrimSpace(fmt.Sprintf("%s has no instance %s", service, model.Text(key))),
			Advice: "it may have left: look at the list again",
		}
	}
	return list[at], nil
}

// openFolder is openFiles for an operation on the folder that the request names. Without this check
// a user might call any method whose name ends like that of an operation.
func (c *Changes) openFolder(ctx context.Context, r *http.Request, op filetransfer.Op) (*opened, error) {
	if op != filetransfer.OpList && r.URL.Query().Get("path") == "" {
		return nil, mistake("there is no path: use ?path= with that of a file")
	}
	o, err := c.openFiles(ctx, r)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(o.folders, func(f folder) bool { return f.Name == o.name })
	if at < 0 {
		o.client.Close()
		return nil, &respond.Error{
			Status: http.StatusNotFound, Text: fmt.Sprintf("%s serves no folder %q", o.instance, model.Text(o.name)),
			Advice: "api/files/SERVICE has the folders of a service",
		}
	}
	o.can = o.folders[at]
	allowed := map[filetransfer.Op]bool{
		filetransfer.OpList: o.can.List, filetransfer.OpStat: o.can.List, filetransfer.OpGet: o.can.Get,
		filetransfer.OpPut: o.can.Put, filetransfer.OpRemove: o.can.Remove,
	}
	if !allowed[op] {
		o.client.Close()
		return nil, respond.Problem(http.StatusNotImplemented, fmt.Sprintf("%s does not serve %s", o.instance, o.method(op)), "its options of filetransfer.Serve say what it serves")
	}
	return o, nil
}

// asUser returns a context for calls with the name of the user.
func asUser(ctx context.Context, r *http.Request) context.Context {
	return anser.WithMetadata(ctx, anser.Metadata{userKey: access.From(r.Context()).Name})
}

// readFolders answers with the folders of a service.
func (c *Changes) readFolders(_ http.ResponseWriter, r *http.Request) (any, error) {
	o, err := c.openFiles(r.Context(), r)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	return foldersAnswer{o.instance, o.folders}, nil
}

// readFiles answers with the entries of a folder.
func (c *Changes) readFiles(_ http.ResponseWriter, r *http.Request) (any, error) {
	o, err := c.openFolder(r.Context(), r, filetransfer.OpList)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	wanted := strings.ToLower(r.URL.Query().Get("q"))
	out := &filesAnswer{Instance: o.instance, Entries: []fileEntry{}}
	scanned := 0
	for info, err := range filetransfer.List(asUser(r.Context(), r), o.client, o.path, o.options()...) {
		if err != nil {
			return nil, fileProblem(err)
		}
		if scanned++; len(out.Entries) == maxFiles || scanned > maxScanned {
			out.More = true
			break
		}
		if e := entryOf(o.path, info); strings.Contains(strings.ToLower(e.Name), wanted) {
			out.Entries = append(out.Entries, e)
		}
	}
	return out, nil
}

// entryOf returns an entry of a folder, whose names a hostile service may have chosen.
func entryOf(dir string, info filetransfer.Info) fileEntry {
	e := fileEntry{Name: model.Text(path.Base(info.Path)), Time: info.ModTime.UTC(), Size: info.Size, Dir: info.Dir, Other: info.Other}
	if info.Path == path.Join(dir, path.Base(info.Path)) && nameable(info.Path) {
		e.Path = info.Path
	}
	return e
}

// nameable reports whether a request can name a path and get the same one.
func nameable(p string) bool {
	return len(p) <= maxFilePath && utf8.ValidString(p) && !strings.ContainsFunc(p, unicode.IsControl)
}

// statAnswer is the answer of api/files/{service}/{name}/stat.
type statAnswer struct {
	Instance string     `json:"instance"`
	Entry    *fileEntry `json:"entry"` // null: there is no such file
}

// readStat answers with what is at a path.
func (c *Changes) readStat(_ http.ResponseWriter, r *http.Request) (any, error) {
	o, err := c.openFolder(r.Context(), r, filetransfer.OpStat)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	info, err := filetransfer.Stat(asUser(r.Context(), r), o.client, o.path, o.options()...)
	if errors.Is(err, anser.NotFound) {
		return statAnswer{Instance: o.instance}, nil
	}
	if err != nil {
		return nil, fileProblem(err)
	}
	e := entryOf(path.Dir(o.path), info)
	return statAnswer{o.instance, &e}, nil
}

// removed is the answer of a removal.
type removed struct {
	Instance string `json:"instance"`
	Path     string `json:"path"`
}

// planRemoval plans the removal of a file or an empty folder.
func (c *Changes) planRemoval(_ http.ResponseWriter, r *http.Request) (*plan, error) {
	o, err := c.openFolder(r.Context(), r, filetransfer.OpRemove)
	if err != nil {
		return nil, err
	}
	return &plan{
		entry: o.entry(r, "remove file", o.method(filetransfer.OpRemove)),
		do: func(ctx context.Context) (any, error) {
			defer o.client.Close()
			if err := filetransfer.Remove(asUser(ctx, r), o.client, o.path, o.options()...); err != nil {
				return nil, fileProblem(err)
			}
			return removed{o.instance, o.path}, nil
		},
		drop: func() { o.client.Close() },
	}, nil
}

// entry returns the entry of the audit log for an operation on a file.
func (o *opened) entry(r *http.Request, action, text string) audit.Entry {
	return audit.Entry{Action: action, Service: o.service, Subject: o.path, Text: text + " at " + o.instance, Reason: r.URL.Query().Get("reason")}
}

// fileProblem returns the problem that an error of package filetransfer is.
func fileProblem(err error) *respond.Error {
	if p, ok := errors.AsType[*respond.Error](err); ok {
		return p
	}
	p := respond.Problem(http.StatusBadGateway, model.Text(err.Error()), "look at the instance")
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Remote {
		p.Text = model.Text(e.Message)
	}
	switch anser.CodeOf(err) {
	case anser.NotFound:
		p.Status, p.Advice = http.StatusNotFound, "it may have been removed: look at the folder again"
	case anser.AlreadyExists:
		p.Status, p.Advice = http.StatusConflict, "nothing was changed: files are replaced with replace=1, and only empty folders can be removed"
	case anser.InvalidArgument, anser.FailedPrecondition:
		p.Status, p.Advice = http.StatusBadRequest, ""
	case anser.PermissionDenied, anser.Unauthenticated:
		p.Status, p.Advice = http.StatusForbidden, "the service refuses this to the console"
	case anser.ResourceExhausted:
		p.Status, p.Advice = http.StatusInsufficientStorage, "make room, raise the limit of the service, or try again later"
	case anser.DeadlineExceeded:
		p.Status, p.Advice = http.StatusGatewayTimeout, "look at the instance, or choose another one"
	}
	return p
}
