// Command mtls shows mutual TLS whose certificates are replaced on disk during calls: none fails.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// WhoAmI returns the common name of the client's certificate.
const WhoAmI anser.Method[anser.None, Name] = "Hello.WhoAmI"

// Name is a common name.
type Name struct{ Name string }

func whoAmI(ctx context.Context, _ *anser.None) (*Name, error) {
	peer, _ := anser.PeerFrom(ctx)
	return &Name{peer.TLS.PeerCertificates[0].Subject.CommonName}, nil
}

// follow opens the certificate of a side and polls its files every few milliseconds; in practice
// ten seconds are enough.
func follow(dir, side string) (*tlsfiles.Files, error) {
	return tlsfiles.Open(
		tlsfiles.Certificate(filepath.Join(dir, side+".pem"), filepath.Join(dir, side+".key")),
		tlsfiles.Authorities(filepath.Join(dir, "ca.pem")), tlsfiles.Poll(5*time.Millisecond), tlsfiles.ExpiresSoon(0))
}

func run(out io.Writer) error {
	dir, err := os.MkdirTemp("", "mtls")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ca, err := newAuthority(dir)
	if err != nil {
		return err
	}
	if err := ca.issue(dir, "server", "127.0.0.1"); err != nil {
		return err
	}
	if err := ca.issue(dir, "client", "the first"); err != nil {
		return err
	}
	serverFiles, err := follow(dir, "server")
	if err != nil {
		return err
	}
	defer serverFiles.Close()
	clientFiles, err := follow(dir, "client")
	if err != nil {
		return err
	}
	defer clientFiles.Close()

	s := anser.NewServer(anser.TLS(serverFiles.Server()))
	WhoAmI.Handle(s, whoAmI)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()

	name, err := ask(l.Addr().String(), clientFiles)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the server sees %q\n", name)

	failed, stop := load(l.Addr().String(), clientFiles)
	for _, side := range []struct{ file, name string }{{"server", "127.0.0.1"}, {"client", "the second"}} {
		if err := ca.issue(dir, side.file, side.name); err != nil {
			return err
		}
	}
	for serverFiles.Stats().Reloads == 0 || name != "the second" {
		if name, err = ask(l.Addr().String(), clientFiles); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "the files change under load: the server sees %q\n", name)
	stop()
	fmt.Fprintf(out, "%d calls failed\n", failed.Load())
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
