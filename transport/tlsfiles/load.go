package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/internal/follow"
)

// content is what was in the files at one time. It is not changed.
type content struct {
	sum          follow.Digest
	certificates []tls.Certificate // with their leaves
	authorities  *x509.CertPool    // nil: none are given
}

// Stats tell how the files were followed.
type Stats struct {
	Loaded   time.Time // when the certificates in use were read
	Reloads  int64     // changes that were taken over
	Failures int64     // contents that could not be used; the same one counts once
	Err      error     // why the files as they are now cannot be used, or nil
	// Certificates are those in use, in the order of the options.
	Certificates []CertificateStats
}

// CertificateStats describe a certificate in use.
type CertificateStats struct {
	File     string
	Subject  string
	NotAfter time.Time
}

// Stats returns the counters and what is in use.
func (f *Files) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	for i, c := range f.now.Load().certificates {
		s.Certificates = append(s.Certificates, CertificateStats{f.o.pairs[i].cert, c.Leaf.Subject.String(), c.Leaf.NotAfter})
	}
	return s
}

// Reload reads the files now, without waiting for the next turn. When they cannot be used it says why, and the old
// certificates stay.
func (f *Files) Reload() error {
	f.looking.Lock()
	defer f.looking.Unlock()
	files, sum, err := follow.Read(f.o.names())
	if err != nil {
		err = fmt.Errorf("tlsfiles: %w", err)
	}
	old := f.now.Load()
	if err == nil && old != nil && old.sum == sum {
		f.noted(nil)
		f.warn(old)
		return nil
	}
	var next *content
	if err == nil {
		next, err = f.o.parse(files)
	}
	if err != nil {
		f.keep(sum, err, old != nil)
		return err
	}
	next.sum = sum
	f.now.Store(next)
	f.noted(next)
	if old != nil {
		f.o.log.Info("TLS: the files have changed and are in use", "certificates", len(next.certificates))
	}
	f.warn(next)
	return nil
}

// noted enters in the counters that the files can be used; next is their content if that is new.
func (f *Files) noted(next *content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Err = nil
	f.refused = follow.Digest{}
	if next == nil {
		return
	}
	if !f.stats.Loaded.IsZero() {
		f.stats.Reloads++
	}
	f.stats.Loaded = time.Now()
}

// keep enters in the counters that the files cannot be used.
func (f *Files) keep(sum follow.Digest, err error, log bool) {
	f.mu.Lock()
	again := f.stats.Err != nil && f.refused == sum && f.stats.Err.Error() == err.Error()
	f.refused, f.stats.Err = sum, err
	if !again {
		f.stats.Failures++
	}
	f.mu.Unlock()
	if log && !again {
		f.o.log.Error("TLS: the files have changed and cannot be used: the certificates from before stay", "err", err)
	}
}

// warn logs which certificates end soon, each once a day.
func (f *Files) warn(c *content) {
	now := time.Now()
	for i, cert := range c.certificates {
		id := cert.Leaf.SerialNumber.String()
		f.mu.Lock()
		due := cert.Leaf.NotAfter.Sub(now) < f.o.soon && now.Sub(f.warned[id]) >= 24*time.Hour
		if due {
			f.warned[id] = now
		}
		f.mu.Unlock()
		if due {
			f.o.log.Warn("TLS: a certificate ends soon: renew it", "file", f.o.pairs[i].cert, "subject", cert.Leaf.Subject.String(), "ends", cert.Leaf.NotAfter)
		}
	}
}

func (o *options) names() []string {
	var names []string
	for _, p := range o.pairs {
		names = append(names, p.cert, p.key)
	}
	return append(names, o.authorities...)
}

// parse makes certificates and authorities of what is in the files.
func (o *options) parse(files [][]byte) (*content, error) {
	c := new(content)
	now := time.Now()
	for i, p := range o.pairs {
		cert, err := tls.X509KeyPair(files[2*i], files[2*i+1])
		if err != nil {
			return nil, fmt.Errorf("tlsfiles: %s with the key %s: %w", p.cert, p.key, err)
		}
		switch leaf := cert.Leaf; {
		case now.After(leaf.NotAfter):
			return nil, fmt.Errorf("tlsfiles: the certificate in %s has ended on %s: renew it", p.cert, leaf.NotAfter.Format(time.DateTime))
		case now.Before(leaf.NotBefore):
			return nil, fmt.Errorf("tlsfiles: the certificate in %s is not valid before %s: is the clock right?", p.cert, leaf.NotBefore.Format(time.DateTime))
		}
		c.certificates = append(c.certificates, cert)
	}
	for i, name := range o.authorities {
		if c.authorities == nil {
			c.authorities = x509.NewCertPool()
		}
		if !c.authorities.AppendCertsFromPEM(files[2*len(o.pairs)+i]) {
			return nil, fmt.Errorf("tlsfiles: %s holds no certificate in PEM: it should be that of an authority", name)
		}
	}
	return c, nil
}
