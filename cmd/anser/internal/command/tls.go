package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// tlsFlags are those of the commands that connect to servers: how, and as whom.
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
	c.Flags().BoolVar(&f.on, "tls", false, "speak TLS with the servers; the flags below and tls:// do so too")
	c.Flags().StringArrayVar(&f.ca, "ca", nil, "PEM file with the authorities to trust instead of the system's")
	c.Flags().StringVar(&f.cert, "cert", "", "PEM file with the certificate to show to the servers")
	c.Flags().StringVar(&f.key, "key", "", "PEM file with its key")
	c.Flags().StringVar(&f.serverName, "server-name", "", "name that the servers' certificates must be for, instead of the host that is dialled")
	c.Flags().BoolVar(&f.checksums, "checksums", false, "have every frame carry a checksum, for networks that change bytes where there is no TLS")
	c.Flags().IntVar(&f.maxMessage, "max-message", 0, "largest message to accept, in bytes; 0 is the default of Anser, 4 MiB")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token to show to the servers")
}

// options returns what anser.Dial needs for the flags.
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

// secure returns what anser.Dial needs for the flags about TLS.
func (f *tlsFlags) secure() ([]anser.DialOption, error) {
	if !f.on && len(f.ca) == 0 && f.cert == "" && f.key == "" && f.serverName == "" {
		return nil, nil
	}
	config, err := clientTLS("--", f.ca, f.cert, f.key)
	if err != nil {
		return nil, err
	}
	config.ServerName = f.serverName
	return []anser.DialOption{anser.TLS(config)}, nil
}
