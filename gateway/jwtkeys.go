package gateway

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/anser-rpc/anser/auth/jwt"
)

// verifier returns the authenticator for the tokens.
func (j *JWT) verifier() (*jwt.Verifier, error) {
	if len(j.Keys) == 0 {
		return nil, errors.New("there are no keys: name the files with the public keys of the issuer")
	}
	var keys jwt.Keys
	for _, k := range j.Keys {
		key, err := readKey(k.File)
		if err != nil {
			return nil, err
		}
		keys = append(keys, jwt.Key{ID: k.ID, Key: key})
	}
	var opts []jwt.Option
	if j.Groups != "" {
		opts = append(opts, jwt.Groups(j.Groups))
	}
	return jwt.New(j.Issuer, j.Audience, keys, opts...)
}

// readKey returns the public key, or that of the certificate, in a PEM file.
func readKey(file string) (any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no PEM block: want a PUBLIC KEY or a CERTIFICATE", file)
	}
	switch block.Type {
	case "PUBLIC KEY":
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return key, nil
	case "CERTIFICATE":
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return c.PublicKey, nil
	}
	return nil, fmt.Errorf("%s has a PEM block %s: want a PUBLIC KEY or a CERTIFICATE", file, block.Type)
}
