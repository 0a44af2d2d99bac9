package target

import (
	"crypto/tls"
	"fmt"
)

// Source is a registry with its access.
type Source struct {
	URL    string
	Access Access
}

// Access is the access to a registry. The zero value means no TLS and no login.
type Access struct {
	TLS      *tls.Config // nil means none
	User     string      // empty if Redis has only a password
	Password string
	Token    string // of Consul
}

// The environment variables of secrets.
const (
	PasswordVariable = "ANSER_REGISTRY_PASSWORD"
	TokenVariable    = "ANSER_REGISTRY_TOKEN"
)

// check rejects access data that a registry of this kind cannot use, because the user would
// wrongly assume that they protect the access.
func (k *kind) check(a Access) error {
	name := k.name
	switch {
	case a.TLS != nil && !k.tls:
		return fmt.Errorf("%s:// does not support TLS: leave --registry-tls, --registry-ca, --registry-cert and --registry-key out", name)
	case a.Token != "" && !k.token:
		return fmt.Errorf("%s:// does not support tokens, which are Consul's: unset $%s%s", name, TokenVariable, k.instead())
	case (a.User != "" || a.Password != "") && !k.user:
		return fmt.Errorf("%s:// does not support users: leave --registry-user out and unset $%s%s", name, PasswordVariable, k.instead())
	case a.User != "" && a.Password == "":
		return fmt.Errorf("the password of %q is missing: put it into $%s", a.User, PasswordVariable)
	case a.Password != "" && a.User == "" && !k.nameless:
		return fmt.Errorf("$%s is set, but no user: name one with --registry-user, or unset it", PasswordVariable)
	}
	return nil
}

// instead names the kind of access that the registry supports.
func (k *kind) instead() string {
	switch {
	case k.user:
		return ", and use --registry-user and $" + PasswordVariable
	case k.token:
		return ", and put a token into $" + TokenVariable
	}
	return ""
}
