package authority_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/authority"
)

func TestIssue(t *testing.T) {
	a, stranger := authority.New("one"), authority.New("other")
	dir := t.TempDir()
	chain, key, err := authority.Write(dir, "server", a.Issue(authority.Named("server"), authority.Numbered(7)))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := cert.Leaf
	if leaf.Subject.CommonName != "server" || leaf.SerialNumber.Int64() != 7 {
		t.Errorf("%s, number %v", leaf.Subject, leaf.SerialNumber)
	}
	for _, test := range []struct {
		trusts  *authority.Authority
		address string
		at      time.Time
		good    bool
	}{
		{a, "127.0.0.1", time.Now(), true},
		{stranger, "127.0.0.1", time.Now(), false},
		{a, "127.0.0.2", time.Now(), false},
		{a, "127.0.0.1", time.Now().Add(2 * time.Hour), false},
	} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: test.trusts.Pool, DNSName: test.address, CurrentTime: test.at})
		if test.good != (err == nil) {
			t.Errorf("%s at %v: %v", test.address, test.at, err)
		}
	}
}

func TestRevoke(t *testing.T) {
	a := authority.New("one")
	block, _ := pem.Decode(a.Revoke(3, 7, 9))
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	own, _ := pem.Decode(a.PEM())
	cert, err := x509.ParseCertificate(own.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := list.CheckSignatureFrom(cert); err != nil {
		t.Error(err)
	}
	if n := len(list.RevokedCertificateEntries); n != 2 || list.Number.Int64() != 3 {
		t.Errorf("%d certificates in edition %v", n, list.Number)
	}
}

func TestWriteSaysWhy(t *testing.T) {
	if _, _, err := authority.Write(t.TempDir()+"/none", "server", authority.New("one").Issue()); !os.IsNotExist(err) {
		t.Errorf("Write = %v", err)
	}
}
