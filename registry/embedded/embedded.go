// Package embedded runs etcd inside the process: a registry for teams that operate none yet. One
// member is enough to begin with; three members in three processes survive the loss of one. A
// separate etcd cluster can take over later, since client, keys and data are the same.
package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/anser-rpc/anser/registry/etcd"
)

// Member is one running member of an etcd cluster, usually the only one. All methods are safe for
// concurrent use.
type Member struct {
	cfg     Config
	etcd    *embed.Etcd
	lock    *fileutil.LockedFile
	streams *streams
	failed  *failure
	guard   func() // stops the space guard
	damaged bool   // etcd has failed, and has files open that cannot be closed
	closing sync.Once

	mu         sync.Mutex // guards the fields below
	closed     bool
	registries []*etcd.Registry
}

// Start starts a member and waits until it serves, which takes about a second; at the first start,
// the members of a larger cluster wait for each other. ctx bounds the start only. The same Dir,
// with the same Listen if that is a fixed port, restores all data. If the data is damaged, Start
// returns an error; then only another process can try again.
func Start(ctx context.Context, cfg Config) (*Member, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded registry: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	m := &Member{cfg: cfg, lock: lock, streams: newStreams(), failed: newFailure(), guard: func() {}}
	if err := m.start(ctx); err != nil {
		m.Close()
		return nil, fmt.Errorf("start the embedded registry in %s: %w", cfg.Dir, err)
	}
	return m, nil
}

// lockDir makes sure that no other member uses the directory. etcd would wait for the other one
// without an error.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("embedded registry: directory %s is in use by another member, or one that failed: stop that process, or use another directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("embedded registry: %w", err)
	}
	return lock, nil
}

// outcome is the result of starting etcd.
type outcome struct {
	etcd    *embed.Etcd
	err     error
	damaged bool
}

// startEtcd starts etcd on its own goroutine. A fatal error, which would exit the process, ends
// only this goroutine; see failure. Some damaged data makes etcd panic before that.
func (m *Member) startEtcd() <-chan outcome {
	started := make(chan outcome, 1)
	go func() {
		o := outcome{damaged: true}
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("etcd cannot read its data: %v", p)
			} else if o.damaged {
				o.err = m.failed.error()
			}
			started <- o
		}()
		o.etcd, o.err = embed.StartEtcd(m.cfg.embed(m.streams, m.failed))
		o.damaged = false
	}()
	return started
}

func (m *Member) start(ctx context.Context) error {
	started := m.startEtcd()
	select {
	case o := <-started:
		m.etcd, m.damaged = o.etcd, o.damaged
		if o.err != nil {
			return o.err
		}
	case <-ctx.Done():
		// etcd waits for the lock of its database, which another process holds, and cannot be
		// stopped.
		m.damaged = true
		go func() {
			if o := <-started; o.etcd != nil {
				o.etcd.Close()
			}
		}()
		return fmt.Errorf("%w while etcd waits for its database: is another etcd using it?", ctx.Err())
	}
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-m.etcd.Server.StopNotify():
		return errors.New("etcd stopped before it served")
	case err := <-m.etcd.Err():
		return err
	case <-m.failed.done:
		return m.failed.error()
	case <-ctx.Done():
		if len(m.cfg.Peers) > 1 {
			return fmt.Errorf("%w while waiting for other members: start those of %v too", ctx.Err(), m.cfg.Peers)
		}
		return ctx.Err()
	}
	m.guard = guardSpace(m.etcd.Server, m.cfg)
	return nil
}

// Endpoint returns the address at which clients reach the member, host:port.
func (m *Member) Endpoint() string {
	if m.cfg.Advertise != "" {
		return m.cfg.Advertise
	}
	return m.local()
}

// local returns the address at which this process reaches the member.
func (m *Member) local() string {
	address := m.etcd.Clients[0].Addr().String()
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return address
	}
	return net.JoinHostPort("127.0.0.1", port)
}

var errClosed = errors.New("the embedded registry is closed: start it again")

// Registry returns a registry on the member. It uses loopback, like a client in another process.
// Closing the member also closes the registry.
func (m *Member) Registry(opts ...etcd.Option) (*etcd.Registry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	r, err := dial([]string{m.local()}, m.cfg, opts)
	if err == nil {
		m.registries = append(m.registries, r)
	}
	return r, err
}

func dial(endpoints []string, cfg Config, opts []etcd.Option) (*etcd.Registry, error) {
	var all []etcd.DialOption
	for _, opt := range opts {
		all = append(all, opt)
	}
	if cfg.TLS != nil {
		client, err := cfg.TLS.client(cfg.Advertise)
		if err != nil {
			return nil, err
		}
		all = append(all, etcd.TLS(client))
	}
	return etcd.Dial(endpoints, all...)
}

// Done returns a channel that is closed when the member has failed, for example because of disk
// errors. The process continues, and so does the rest of a larger cluster; but only another
// process can start the member again, since etcd leaves files open and locks held.
func (m *Member) Done() <-chan struct{} { return m.failed.done }

// Err returns why the member failed, or nil.
func (m *Member) Err() error { return m.failed.error() }

// Close closes the registries of the member and stops it; the data stays. It may be called more
// than once.
func (m *Member) Close() (err error) {
	m.closing.Do(func() {
		m.mu.Lock()
		m.closed = true
		registries := m.registries
		m.mu.Unlock()
		errs := closeAll(registries)
		m.guard()
		err = errors.Join(append(errs, m.stop())...)
		if !m.damaged { // otherwise etcd would wait forever when started again in this process
			m.lock.Close()
		}
	})
	return err
}

func closeAll(registries []*etcd.Registry) []error {
	var wg sync.WaitGroup
	errs := make([]error, len(registries))
	for i, r := range registries {
		wg.Go(func() { errs[i] = r.Close() })
	}
	wg.Wait()
	return errs
}

// stopTimeout bounds how long a member may take to stop. After a failure some of its goroutines
// have ended, and others wait for them.
const stopTimeout = 10 * time.Second

func (m *Member) stop() error {
	if m.etcd == nil {
		return nil
	}
	// Otherwise etcd waits seconds for the watches to end by themselves.
	m.streams.cancel()
	m.failed.closing.Store(true)
	stopped := make(chan struct{})
	go func() { defer close(stopped); m.etcd.Close() }()
	timeout := stopTimeout
	if m.failed.error() != nil {
		m.damaged, timeout = true, time.Second
	}
	select {
	case <-stopped:
		return m.failed.error()
	case <-time.After(timeout):
		return errors.Join(fmt.Errorf("the embedded registry has not stopped within %v", timeout), m.failed.error())
	}
}

// leads reports whether the member is the leader of its cluster.
func (m *Member) leads() bool { return m.etcd.Server.Leader() == m.etcd.Server.MemberID() }

// TLS names the files of a member's certificate, its key, and the CA of the clients and the other
// members. Both sides must present a certificate.
type TLS struct {
	CertFile, KeyFile, CAFile string
}

// client returns the TLS configuration of a client in this process. The name in the certificate is
// that of the advertised address.
func (t *TLS) client(advertised string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("embedded registry: %w", err)
	}
	roots, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("embedded registry: %w", err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !cfg.RootCAs.AppendCertsFromPEM(roots) {
		return nil, fmt.Errorf("embedded registry: %s holds no certificate", t.CAFile)
	}
	cfg.ServerName, _, _ = net.SplitHostPort(advertised)
	return cfg, nil
}
