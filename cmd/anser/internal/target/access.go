package target

import (
	"crypto/tls"
	"fmt"
)

// Source is a registry and how to get into it.
type Source struct {
	URL    string
	Access Access
}

// Access is how to get into a registry. The zero value is without TLS, and without saying who it is.
type Access struct {
	TLS      *tls.Config // nil: none
	User     string      // empty where Redis has only a password
	Password string
	Token    string // of Consul
}

// Where what Access holds comes from.
const (
	PasswordVariable = "ANSER_REGISTRY_PASSWORD"
	TokenVariable    = "ANSER_REGISTRY_TOKEN"
)

// check refuses what a registry of the kind cannot use, so that nobody believes to be protected who is not.
func (k *kind) check(a Access) error {
	name := k.name
	switch {
	case a.TLS != nil && !k.tls:
		return fmt.Errorf("%s:// knows no TLS: leave --registry-tls, --registry-ca, --registry-cert and --registry-key out", name)
	case a.Token != "" && !k.token:
		return fmt.Errorf("%s:// knows no tokens, which are Consul's: unset $%s%s", name, TokenVariable, k.instead())
	case (a.User != "" || a.Password != "") && !k.user:
		return fmt.Errorf("%s:// knows no users: leave --registry-user out and unset $%s%s", name, PasswordVariable, k.instead())
	case a.User != "" && a.Password == "":
		return fmt.Errorf("the password of %q is missing: put it into $%s", a.User, PasswordVariable)
	case a.Password != "" && a.User == "" && !k.nameless:
		return fmt.Errorf("$%s is set, and nobody is named whose password it is: name them with --registry-user, or unset it", PasswordVariable)
	}
	return nil
}

// instead says what the registry has in place of what was given.
func (k *kind) instead() string {
	switch {
	case k.user:
		return ", and use --registry-user and $" + PasswordVariable
	case k.token:
		return ", and put a token into $" + TokenVariable
	}
	return ""
}
