package command

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// sourceFlags name the registry in which services are found, and the access to it. Their defaults,
// and secrets, come from the environment.
type sourceFlags struct {
	url       string
	tls       bool
	ca        []string
	cert, key string
	user      string
}

func (f *sourceFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.url, "registry", target.RegistryURL(),
		"registry in which services are found; $"+target.RegistryVariable+" sets another default")
	fs.BoolVar(&f.tls, "registry-tls", false, "use TLS with the registry; implied by --registry-ca, --registry-cert and --registry-key")
	var ca []string
	if file := os.Getenv("ANSER_REGISTRY_CA"); file != "" {
		ca = []string{file}
	}
	fs.StringArrayVar(&f.ca, "registry-ca", ca, "PEM file with the authorities to trust for it ($ANSER_REGISTRY_CA)")
	fs.StringVar(&f.cert, "registry-cert", os.Getenv("ANSER_REGISTRY_CERT"), "PEM file with the client certificate for it ($ANSER_REGISTRY_CERT)")
	fs.StringVar(&f.key, "registry-key", os.Getenv("ANSER_REGISTRY_KEY"), "PEM file with its key ($ANSER_REGISTRY_KEY)")
	fs.StringVar(&f.user, "registry-user", os.Getenv("ANSER_REGISTRY_USER"),
		"user of the registry ($ANSER_REGISTRY_USER), whose password is in $"+target.PasswordVariable+"; Consul's token is in $"+target.TokenVariable)
}

// source returns the registry and the access in the flags and the environment.
func (f *sourceFlags) source() (target.Source, error) {
	s := target.Source{URL: f.url, Access: target.Access{
		User: f.user, Password: os.Getenv(target.PasswordVariable), Token: os.Getenv(target.TokenVariable),
	}}
	var err error
	if f.tls || len(f.ca) > 0 || f.cert != "" || f.key != "" {
		s.Access.TLS, err = clientTLS("--registry-", f.ca, f.cert, f.key)
	}
	return s, err
}

// open opens the registry.
func (f *sourceFlags) open() (*target.Registry, error) {
	s, err := f.source()
	if err != nil {
		return nil, err
	}
	r, err := target.Open(s)
	if err != nil {
		return nil, &usageError{err}
	}
	return r, nil
}

// clientTLS returns a configuration with the authorities of the files instead of the system's
// roots, and with the certificate. The names of the flags begin with prefix.
func clientTLS(prefix string, ca []string, cert, key string) (*tls.Config, error) {
	if (cert == "") != (key == "") {
		return nil, usagef("%scert and %skey belong together: give both", prefix, prefix)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
	}
	for _, file := range ca {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, &usageError{fmt.Errorf("%sca: %w", prefix, err)}
		}
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("%sca: %s holds no certificate: it must be PEM, with BEGIN CERTIFICATE", prefix, file)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, &usageError{fmt.Errorf("%scert %s with %skey %s: %w", prefix, cert, prefix, key, err)}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
