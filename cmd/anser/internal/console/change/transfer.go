package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/filetransfer"
)

// Limits of transfers. Their bytes pass through: the console holds a block of each transfer.
const (
	maxUpload      = 64 << 30 // bytes
	maxTransfers   = 32       // of the console at a time
	maxTransfersOf = 8        // of a user
	// pieceWithin is how long a viewer may take to send or take a block.
	pieceWithin = 30 * time.Second
	// stallAfter is how long a service may take for a block, and commitWithin for what follows the
	// last one: it writes the file to its disk.
	stallAfter   = time.Minute
	commitWithin = 5 * time.Minute
	// retryFor is how long a transfer tries to reach the instance again without success.
	retryFor = 10 * time.Second
	// drained is how much is read of an upload that has failed: a viewer that still sends might not
	// read the answer.
	drained       = 16 << 20 // bytes
	drainedWithin = 5 * time.Second
)

// guardTransfer returns a context for a transfer, which ends when touch was not called for as long
// as its last argument says, and with the request unless its bytes are complete: what follows them
// takes the service little time, and the audit log must know how it ended.
func guardTransfer(r *http.Request, complete func() bool) (ctx context.Context, touch func(time.Duration), stop func()) {
	ctx, cancel := context.WithCancelCause(asUser(context.WithoutCancel(r.Context()), r))
	left := context.AfterFunc(r.Context(), func() {
		if !complete() {
			cancel(cutOff(r.Context()))
		}
	})
	t := time.AfterFunc(stallAfter, func() {
		cancel(respond.Problem(http.StatusGatewayTimeout, "the transfer has stalled: the service does nothing", "look at the instance"))
	})
	return ctx, func(d time.Duration) { t.Reset(d) }, func() {
		t.Stop()
		left()
		cancel(nil)
	}
}

// cutOff returns why a transfer has ended with the context of its request.
func cutOff(ctx context.Context) *respond.Error {
	if errors.Is(context.Cause(ctx), access.ErrNoWord) {
		return respond.Problem(http.StatusRequestTimeout, fmt.Sprintf("the proxy has not named the user for %v, or with a role that does not suffice", access.WordBound),
			"keep a page of the console open meanwhile, or use \"anser file put\" or \"anser file get\"")
	}
	return respond.Problem(http.StatusRequestTimeout, "the viewer has left, or the session has ended", "try again")
}

// transfers counts the transfers that run. The zero value is ready.
type transfers struct {
	mu  sync.Mutex // guards the fields below
	all int
	of  map[string]int // by user
}

// begin counts a transfer of a user with at most a number of them at a time, and returns a function
// for its end.
func (t *transfers) begin(user string, most int) (end func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const advice = "try again when one of them has ended"
	switch {
	case t.of[user] >= most:
		return nil, respond.Problem(http.StatusTooManyRequests, fmt.Sprintf("%d transfers of files of %s are running", most, user), advice)
	case t.all >= maxTransfers:
		return nil, respond.Problem(http.StatusTooManyRequests, fmt.Sprintf("%d transfers of files are running", maxTransfers), advice)
	case t.of == nil:
		t.of = make(map[string]int)
	}
	t.all++
	t.of[user]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all--
		if t.of[user]--; t.of[user] == 0 {
			delete(t.of, user)
		}
	}, nil
}

// beginTransfer counts a transfer of the user of a request, and returns a function for its end.
// Without a login all users are one, which may have all transfers.
func (c *Changes) beginTransfer(r *http.Request) (end func(), err error) {
	most := maxTransfersOf
	if c.d.Access.Login() == access.None {
		most = maxTransfers
	}
	return c.transfers.begin(access.From(r.Context()).Name, most)
}

// serveDownload sends a file. It is an attachment of an unknown type, so that no browser shows what
// a service has sent as a page of the console.
func (c *Changes) serveDownload(w http.ResponseWriter, r *http.Request) {
	o, info, err := c.openDownload(r)
	if err != nil {
		asProblem(err).Write(w)
		return
	}
	defer o.client.Close()
	h := w.Header()
	set := map[string]string{
		"Content-Type":            "application/octet-stream",
		"Content-Disposition":     mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(o.path)}),
		"Content-Length":          strconv.FormatInt(info.Size, 10),
		"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
		"Last-Modified":           info.ModTime.UTC().Format(http.TimeFormat),
	}
	policy := h.Get("Content-Security-Policy")
	for name, value := range set {
		h.Set(name, value)
	}
	if r.Method == http.MethodHead {
		return
	}
	out := &download{w: w, control: http.NewResponseController(w), want: info.Size}
	if err = c.download(r, o, out); err == nil {
		return
	}
	if out.begun {
		panic(http.ErrAbortHandler) // the browser sees that the file is not complete
	}
	for name := range set {
		h.Del(name)
	}
	h.Set("Content-Security-Policy", policy)
	fileProblem(err).Write(w)
}

// openDownload opens the folder of a download and looks at the file.
func (c *Changes) openDownload(r *http.Request) (*opened, filetransfer.Info, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patient)
	defer cancel()
	o, err := c.openFolder(ctx, r, filetransfer.OpGet)
	if err != nil {
		return nil, filetransfer.Info{}, err
	}
	info, err := filetransfer.Stat(asUser(ctx, r), o.client, o.path, o.options()...)
	switch {
	case err != nil:
		err = fileProblem(err)
	case info.Dir || info.Other || info.Size < 0:
		err = mistake("%q is not a file: name one in it", model.Text(o.path))
	}
	if err != nil {
		o.client.Close()
		return nil, info, err
	}
	return o, info, nil
}

// download sends a file, and records that if the console has an audit log: it reads what a service
// has, as a call does.
func (c *Changes) download(r *http.Request, o *opened, out *download) error {
	end, err := c.beginTransfer(r)
	if err != nil {
		return err
	}
	defer end()
	if c.d.Log == nil {
		return o.get(r, out)
	}
	entry := o.entry(r, "download file", fmt.Sprintf("%s of %d bytes", o.method(filetransfer.OpGet), out.want))
	begun, err := c.d.Log.Add(c.signed(r, entry))
	if err != nil {
		return unrecorded("the file was not sent, as the download", err)
	}
	err = o.get(r, out)
	c.end(begun, "", err) //nits:ignore errcheck the file has been sent
	return err
}

// get sends the bytes of a file.
func (o *opened) get(r *http.Request, out *download) error {
	ctx, touch, stop := guardTransfer(r, func() bool { return false })
	defer stop()
	out.touch = touch
	_, err := filetransfer.GetTo(ctx, o.client, o.path, out, o.options(filetransfer.Patience(retryFor))...)
	if out.size > out.want || err == nil && out.size < out.want {
		return mistake("%q was changed while it was sent: download it again", model.Text(o.path))
	}
	if err == nil {
		err = out.finish()
	}
	if p, ok := errors.AsType[*respond.Error](context.Cause(ctx)); ok && err != nil {
		return p
	}
	return err
}

// download is the answer with a file. It keeps the last byte until the checksum of all of them is
// known to be right: without it, browsers see that the file is not complete.
type download struct {
	w       http.ResponseWriter
	control *http.ResponseController
	touch   func(time.Duration)
	begun   bool
	want    int64  // the size that the browser was told
	last    []byte // of what Write got, at most 1 byte
	size    int64  // of all that Write got
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	d.touch(stallAfter + pieceWithin)
	if len(p) == 0 {
		return 0, nil
	}
	if d.size += int64(len(p)); d.size > d.want {
		return 0, http.ErrContentLength // before the byte that is kept, which may be the last one of that size
	}
	if err := d.put(d.last); err != nil {
		return 0, err
	}
	if err := d.put(p[:len(p)-1]); err != nil {
		return 0, err
	}
	d.last = append(d.last[:0], p[len(p)-1])
	d.touch(stallAfter)
	return len(p), nil
}

func (d *download) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	d.begun = true
	d.control.SetWriteDeadline(time.Now().Add(pieceWithin)) //nits:ignore errcheck tests have writers without deadlines
	_, err := d.w.Write(p)
	return err
}

// finish writes the last byte.
func (d *download) finish() error { return d.put(d.last) }

// uploaded is the answer of an upload.
type uploaded struct {
	Instance string `json:"instance"`
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
}

// serveUpload passes the body of a request on to a service, as a file.
func (c *Changes) serveUpload(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Time{}) //nits:ignore errcheck tests have writers without deadlines
	v, err := c.upload(r, control)
	control.SetWriteDeadline(time.Now().Add(pieceWithin)) //nits:ignore errcheck as above
	if err != nil {
		if cause := context.Cause(r.Context()); cause == nil || errors.Is(cause, access.ErrNoWord) {
			control.SetReadDeadline(time.Now().Add(drainedWithin)) //nits:ignore errcheck as above
			io.CopyN(io.Discard, r.Body, drained)                  //nits:ignore errcheck the rest does not matter
		}
		fileProblem(err).Write(w)
		return
	}
	respond.JSON(w, http.StatusOK, v)
}

// upload checks an upload and makes it.
func (c *Changes) upload(r *http.Request, control *http.ResponseController) (*uploaded, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/octet-stream" {
		return nil, respond.Problem(http.StatusUnsupportedMediaType, "the body is not a file", "send its bytes as application/octet-stream")
	}
	switch {
	case r.ContentLength < 0:
		return nil, respond.Problem(http.StatusLengthRequired, "the size of the file is not known", "send it with a Content-Length")
	case r.ContentLength > maxUpload:
		return nil, respond.Problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the file has more than %d bytes", int64(maxUpload)), "send it with anser file put")
	}
	end, err := c.beginTransfer(r)
	if err != nil {
		return nil, err
	}
	defer end()
	opening, cancel := context.WithTimeout(r.Context(), patient)
	defer cancel()
	o, err := c.openFolder(opening, r, filetransfer.OpPut)
	if err != nil {
		return nil, asProblem(err)
	}
	defer o.client.Close()
	if err := c.over(r); err != nil {
		return nil, err
	}
	begun, err := c.begin(r, o.entry(r, "upload file", fmt.Sprintf("%s of %d bytes", o.method(filetransfer.OpPut), r.ContentLength)))
	if err != nil {
		return nil, err
	}
	v, err := o.put(r, control)
	return v, errors.Join(err, c.end(begun, "", err))
}

// put passes the body on. The file is complete at the service, or what it was before.
func (o *opened) put(r *http.Request, control *http.ResponseController) (*uploaded, error) {
	body := &uploadBody{body: r.Body, size: r.ContentLength, control: control}
	ctx, touch, stop := guardTransfer(r, body.complete)
	defer stop()
	body.over, body.touch = func() error { return context.Cause(ctx) }, touch
	defer context.AfterFunc(ctx, func() { control.SetReadDeadline(time.Now()) })() //nits:ignore errcheck as above: it ends a Read
	opts := []filetransfer.Option{filetransfer.Parents(), filetransfer.Patience(retryFor)}
	if r.URL.Query().Get("replace") != "1" {
		opts = append(opts, filetransfer.NoReplace())
	}
	got, err := filetransfer.PutFrom(ctx, o.client, body, r.ContentLength, o.path, o.options(opts...)...)
	if err == nil {
		return &uploaded{o.instance, o.path, got.Size, got.Sum}, nil
	}
	if p, ok := errors.AsType[*respond.Error](context.Cause(ctx)); ok {
		return nil, p
	}
	return nil, fileProblem(err)
}

// uploadBody is the body of an upload. It can be read once, from its beginning to its end.
type uploadBody struct {
	over    func() error // why the transfer has ended, or nil
	body    io.Reader
	size    int64
	at      atomic.Int64 // number of bytes that were read
	control *http.ResponseController
	touch   func(time.Duration)
}

// ReadAt implements io.ReaderAt for a transfer that is not continued.
func (b *uploadBody) ReadAt(p []byte, from int64) (int, error) {
	if from != b.at.Load() {
		return 0, respond.Problem(http.StatusBadGateway, "the connection to the service broke, and the bytes that it has lost are gone", "upload the file again")
	}
	b.touch(stallAfter + pieceWithin)
	b.control.SetReadDeadline(time.Now().Add(pieceWithin)) //nits:ignore errcheck tests have readers without deadlines
	if err := b.over(); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(b.body, p)
	at := b.at.Add(int64(n))
	if err != nil {
		return n, mistake("the upload ended after %d of %d bytes", at, b.size)
	}
	if b.complete() {
		b.touch(commitWithin)
	} else {
		b.touch(stallAfter)
	}
	return n, nil
}

// complete reports whether all of the body was read.
func (b *uploadBody) complete() bool { return b.at.Load() == b.size }
