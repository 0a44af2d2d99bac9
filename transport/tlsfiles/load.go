package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/internal/follow"
)

// content is the parsed content of the files at one time. It is immutable.
type content struct {
	sum          follow.Digest
	certificates []tls.Certificate // with their leaves
	authorities  *x509.CertPool    // nil means none
}

// Stats holds the counters and the state of a Files.
type Stats struct {
	Loaded   time.Time // when the certificates in use were read
	Reloads  int64     // changes that were applied
	Failures int64     // invalid contents; the same one counts once
	Err      error     // why the present files cannot be used, or nil
	// Certificates lists the certificates in use, in the order of the options.
	Certificates []CertificateStats
}

// CertificateStats describes a certificate in use.
type CertificateStats struct {
	File     string
	Subject  string
	NotAfter time.Time
}

// Stats returns the counters and the certificates in use.
func (f *Files) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	for i, c := range f.now.Load().certificates {
		s.Certificates = append(s.Certificates, CertificateStats{f.o.pairs[i].cert, c.Leaf.Subject.String(), c.Leaf.NotAfter})
	}
	return s
}

// Reload reads the files now, without waiting for the next poll. If they are not usable, it
// returns an error, and the old certificates stay in use.
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

// noted records that the files are usable; next is their content if it is new.
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

// keep records that the files are not usable.
func (f *Files) keep(sum follow.Digest, err error, log bool) {
	f.mu.Lock()
	again := f.stats.Err != nil && f.refused == sum && f.stats.Err.Error() == err.Error()
	f.refused, f.stats.Err = sum, err
	if !again {
		f.stats.Failures++
	}
	f.mu.Unlock()
	if log && !again {
		f.o.log.Error("TLS: the files have changed and cannot be used: the previous certificates stay in use", "err", err)
	}
}

// warn logs the certificates that expire soon, each once a day.
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
			f.o.log.Warn("TLS: a certificate expires soon: renew it", "file", f.o.pairs[i].cert, "subject", cert.Leaf.Subject.String(), "ends", cert.Leaf.NotAfter)
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

// parse parses the certificates and authorities in the files.
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
			return nil, fmt.Errorf("tlsfiles: the certificate in %s expired on %s: renew it", p.cert, leaf.NotAfter.Format(time.DateTime))
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
