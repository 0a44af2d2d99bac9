package command

import (
	"crypto/tls"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// tlsFlags are the flags of the commands that connect to servers.
type tlsFlags struct {
	on         bool
	ca         []string
	cert, key  string
	serverName string
	tokenFile  string
	checksums  bool
	maxMessage int
}

func (f *tlsFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "tls", false, "use TLS with the servers; implied by the flags below and tls://")
	c.Flags().StringArrayVar(&f.ca, "ca", nil, "PEM file with the authorities to trust instead of the system's")
	c.Flags().StringVar(&f.cert, "cert", "", "PEM file with the client certificate")
	c.Flags().StringVar(&f.key, "key", "", "PEM file with its key")
	c.Flags().StringVar(&f.serverName, "server-name", "", "name in the servers' certificates, if it is not the dialled host")
	c.Flags().BoolVar(&f.checksums, "checksums", false, "add a checksum to every frame, for networks that corrupt data, without TLS")
	c.Flags().IntVar(&f.maxMessage, "max-message", 0, "largest message to accept, in bytes; 0 is the default of Anser, 4 MiB")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token for the servers")
}

// options returns the options of anser.Dial for the flags.
func (f *tlsFlags) options() ([]anser.DialOption, error) {
	if f.tokenFile != "" {
		if _, err := os.Stat(f.tokenFile); err != nil {
			return nil, &usageError{fmt.Errorf("--token-file: %w", err)}
		}
	}
	secure, err := f.secure()
	if err == nil && f.tokenFile != "" {
		secure = append(secure, auth.TokenFile(f.tokenFile))
	}
	if f.maxMessage != 0 {
		secure = append(secure, anser.MaxMessage(f.maxMessage))
	}
	if f.checksums {
		secure = append(secure, anser.Checksums())
	}
	return secure, err
}

// secure returns the options of anser.Dial for the TLS flags.
func (f *tlsFlags) secure() ([]anser.DialOption, error) {
	config, err := f.config()
	if err != nil || config == nil {
		return nil, err
	}
	return []anser.DialOption{anser.TLS(config)}, nil
}

// config returns the configuration for the TLS flags, or nil without any.
func (f *tlsFlags) config() (*tls.Config, error) {
	if !f.on && len(f.ca) == 0 && f.cert == "" && f.key == "" && f.serverName == "" {
		return nil, nil
	}
	config, err := clientTLS("--", f.ca, f.cert, f.key)
	if err != nil {
		return nil, err
	}
	config.ServerName = f.serverName
	return config, nil
}
