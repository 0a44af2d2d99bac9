// Package admin serves the admin page of a process: what its servers and clients do now, as HTML
// for a browser, text for curl, and JSON for programs.
//
//	meter := telemetry.New()
//	s := anser.NewServer(meter.Option())
//	page, err := admin.New(meter)
//	go page.ListenAndServe("127.0.0.1:8970")
//
// A [Page] is a http.Handler too, which a server can have on its own port: see
// protocols.Handler. It shows no metadata, no messages and no credentials, and changes nothing.
package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/telemetry"
)

// Option configures a [Page].
type Option func(*options) error

type options struct {
	name      string
	tokens    []func(*http.Request) bool // compare one; any of these and of the next may agree
	authorize []func(*http.Request) bool // none of both: loopback only
	hosts     []string
	tls       *tls.Config
	insecure  bool
	flight    flightOptions
	handlers  map[string]http.Handler
	log       *slog.Logger
}

// Name sets the name of the process; the default is that of its program.
func Name(name string) Option {
	return func(o *options) error {
		if o.name = name; name == "" {
			return errors.New("admin.Name: the name is empty: leave the option out for that of the program")
		}
		return nil
	}
}

// minToken is the length from which a token cannot be guessed.
const minToken = 16

// Token makes the page answer requests with this token alone, of at least 16 bytes: as the bearer
// token of the header Authorization, or as the password that a browser asks for, with any user. It
// can be given several times, for several tokens.
func Token(token string) Option {
	return func(o *options) error {
		if len(token) < minToken {
			return fmt.Errorf("admin.Token: the token has %d bytes: use a random one of at least %d", len(token), minToken)
		}
		want := sha256.Sum256([]byte(token))
		o.tokens = append(o.tokens, func(r *http.Request) bool {
			got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok {
				_, got, ok = r.BasicAuth()
			}
			sum := sha256.Sum256([]byte(got))
			return ok && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
		})
		return nil
	}
}

// Authorize makes the page answer requests for which f returns true, or which have a [Token]. f is
// called from several goroutines. It may look at the address alone: without TLS of its own the page
// is then asked by IP address, as localhost, by the name of the machine or by one of [AllowHosts],
// as a page of another site could read it through a browser at such an address otherwise, under a
// name of its own that it points here (DNS rebinding).
func Authorize(f func(r *http.Request) bool) Option {
	return func(o *options) error {
		if f == nil {
			return errors.New("admin.Authorize: the function is nil")
		}
		o.authorize = append(o.authorize, f)
		return nil
	}
}

// AllowHosts names hosts, besides IP addresses and localhost, under which the page is reached on
// this machine, and with [Authorize] without TLS on others. A request with another one is refused:
// its name may have been pointed at this machine by an attacker (DNS rebinding).
func AllowHosts(hosts ...string) Option {
	return func(o *options) error {
		for _, h := range hosts {
			if h == "" || strings.ContainsAny(h, "/:@ ") {
				return fmt.Errorf("admin.AllowHosts: %q is not a host: use a name such as \"app.example\", without scheme and port", h)
			}
		}
		o.hosts = append(o.hosts, hosts...)
		return nil
	}
}

// TLS makes [Page.ListenAndServe] use TLS.
func TLS(config *tls.Config) Option {
	return func(o *options) error {
		if o.tls = config; config == nil {
			return errors.New("admin.TLS: the configuration is nil: leave the option out for a page without TLS")
		}
		return nil
	}
}

// InsecurePublic lets [Page.ListenAndServe] listen on other addresses than loopback without TLS.
// Then an attacker on the network path can read the page, and the token.
func InsecurePublic() Option {
	return func(o *options) error {
		o.insecure = true
		return nil
	}
}

// Handle adds another handler to the page at a path such as "metrics", behind the same checks.
func Handle(path string, h http.Handler) Option {
	return func(o *options) error {
		if h == nil {
			return fmt.Errorf("admin.Handle: the handler of %q is nil", path)
		}
		if path == "" || strings.ContainsAny(path, "/.?#% ") || isPage(path) {
			return fmt.Errorf("admin.Handle: %q cannot be a path of the page: use one word that is not taken, such as \"metrics\"", path)
		}
		o.handlers[path] = h
		return nil
	}
}

// Logger sets the logger for events of the page; the default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error {
		if o.log = l; l == nil {
			return errors.New("admin.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)")
		}
		return nil
	}
}

// Page is the admin page of a process. It is safe for concurrent use. While no viewer looks at
// it, it does nothing, unless it has a [FlightRecorder].
type Page struct {
	meter    *telemetry.Meter
	o        options
	self     Process // what does not change
	samples  sampler
	follower follower
	flight   *flight       // nil: none
	places   chan struct{} // a place for each request that is served
	closed   chan struct{}
	close    sync.Once
	guesses  guesses

	mu      sync.Mutex // guards the fields below
	servers map[*http.Server]struct{}
	ended   bool
}

// New returns the page of what the meter measures. It needs [Page.Close] only if it is served by
// ListenAndServe or Serve, or has a [FlightRecorder].
func New(meter *telemetry.Meter, opts ...Option) (*Page, error) {
	if meter.Observer().Measure == nil {
		return nil, errors.New("admin.New: the meter is nil, or was not made by telemetry.New")
	}
	p := &Page{meter: meter, places: make(chan struct{}, maxViewers), closed: make(chan struct{}), servers: make(map[*http.Server]struct{})}
	p.samples.meter = meter
	p.o = options{log: slog.Default(), handlers: make(map[string]http.Handler)}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("admin.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(&p.o))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.self = self(p.o.name)
	if p.o.flight.slower > 0 {
		var err error
		if p.flight, err = startFlight(meter, p.o.flight, p.o.log, p.closed); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// errNotMade is the error of a page that is nil or a zero value.
var errNotMade = errors.New("the admin page was not made by admin.New")

// made reports whether the page comes from New.
func (p *Page) made() bool { return p != nil && p.meter != nil }

// self describes the process, as far as it does not change.
func self(name string) Process {
	id := make([]byte, 8)
	rand.Read(id)
	out := Process{ID: hex.EncodeToString(id), Name: name, Started: start}
	if out.Name == "" && len(os.Args) > 0 {
		out.Name = filepath.Base(os.Args[0])
	}
	out.Host, _ = os.Hostname()
	if info, ok := debug.ReadBuildInfo(); ok {
		out.Module = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	}
	return out
}

// Close ends ListenAndServe, Serve, what viewers follow live, and the flight recorder, and waits
// for them.
func (p *Page) Close() error {
	if !p.made() {
		return errNotMade
	}
	p.mu.Lock()
	p.ended = true
	servers := p.servers
	p.servers = nil
	p.mu.Unlock()
	p.close.Do(func() { close(p.closed) })
	var errs []error
	for s := range servers {
		errs = append(errs, s.Close())
	}
	if p.flight != nil {
		p.flight.wg.Wait()
	}
	return errors.Join(errs...)
}

// start is about when the process has started.
var start = time.Now()
