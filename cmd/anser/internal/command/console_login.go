package command

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
)

// oidcSecretVariable has the client secret for the provider of OpenID Connect.
const oidcSecretVariable = "ANSER_CONSOLE_OIDC_SECRET"

// loginFlags say how users of the console log in.
type loginFlags struct {
	users string

	issuer, client, secretFile, claim string
	roles                             []string // group=role

	header, roleHeader, role string
	from                     []string
}

func (f *loginFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.users, "users", "", "file of users who may log in: see \"anser console user add\"")
	fs.StringVar(&f.issuer, "oidc-issuer", "", "URL of the provider of OpenID Connect that logs users in")
	fs.StringVar(&f.client, "oidc-client-id", "", "id of the console at the provider")
	fs.StringVar(&f.secretFile, "oidc-secret-file", "", "file with the secret of the console at the provider (default $"+oidcSecretVariable+")")
	fs.StringVar(&f.claim, "oidc-claim", "groups", "claim with the groups of a user")
	fs.StringArrayVar(&f.roles, "oidc-role", nil, "GROUP=ROLE: the role of the users in a group; * is every user of the provider")
	fs.StringVar(&f.header, "proxy-header", "", "header in which a proxy that logs users in sends their names, such as X-Forwarded-User")
	fs.StringArrayVar(&f.from, "proxy-from", nil, "address or prefix of that proxy, such as 10.0.0.5 or 10.0.0.0/28; requests from elsewhere are refused. With --users or --oidc-issuer: of a proxy in front, whose X-Forwarded-For is believed")
	fs.StringVar(&f.roleHeader, "proxy-role-header", "", "header in which the proxy sends the role of the user")
	fs.StringVar(&f.role, "proxy-role", "", "role of users for whom the proxy sends none: look, operate or administer; without it they are refused")
}

// access returns how users log in. at is the URL of the console for browsers, or "".
func (f *loginFlags) access(at string) (a site.Access, err error) {
	a.Users = f.users
	if f.issuer == "" && (f.client != "" || f.secretFile != "" || len(f.roles) > 0) {
		return a, usagef("--oidc-client-id, --oidc-secret-file and --oidc-role need --oidc-issuer")
	}
	if f.issuer != "" {
		if a.OIDC, err = f.provider(at); err != nil {
			return a, err
		}
	}
	if f.header == "" && (f.roleHeader != "" || f.role != "") {
		return a, usagef("--proxy-role and --proxy-role-header need --proxy-header")
	}
	if f.header == "" && len(f.from) > 0 && f.users == "" && f.issuer == "" {
		return a, usagef("--proxy-from needs --proxy-header if the proxy logs users in, otherwise --users or --oidc-issuer")
	}
	if f.header != "" {
		a.Proxy, err = f.proxy()
	} else {
		a.Trusted, err = f.proxies()
	}
	return a, err
}

// everyUser is the group of all users of a provider.
const everyUser = "*"

func (f *loginFlags) provider(at string) (*access.OIDCOptions, error) {
	o := &access.OIDCOptions{Issuer: f.issuer, ClientID: f.client, ClientSecret: os.Getenv(oidcSecretVariable), Claim: f.claim, Roles: make(map[string]access.Role)}
	if at == "" {
		return nil, usagef("--oidc-issuer needs --url, the URL of the console for browsers, to which the provider leads them back")
	}
	o.Redirect = strings.TrimRight(at, "/") + "/api/oidc/callback"
	if f.secretFile != "" {
		secret, err := os.ReadFile(f.secretFile)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--oidc-secret-file: %w", err)}
		}
		o.ClientSecret = strings.TrimSpace(string(secret))
	}
	for _, text := range f.roles {
		group, name, ok := strings.Cut(text, "=")
		var role access.Role
		if !ok || group == "" {
			return nil, usagef("--oidc-role %q: use GROUP=ROLE, such as ops=operate", text)
		}
		if err := role.UnmarshalText([]byte(name)); err != nil {
			return nil, &usageError{fmt.Errorf("--oidc-role %q: %w", text, err)}
		}
		if group == everyUser {
			o.Role = role
		} else {
			o.Roles[group] = role
		}
	}
	return o, nil
}

func (f *loginFlags) proxy() (*access.ProxyOptions, error) {
	o := &access.ProxyOptions{Header: f.header, Roles: f.roleHeader}
	if f.role != "" {
		if err := o.Role.UnmarshalText([]byte(f.role)); err != nil {
			return nil, &usageError{fmt.Errorf("--proxy-role: %w", err)}
		}
	}
	var err error
	o.From, err = f.proxies()
	return o, err
}

// proxies returns the addresses of the proxies in front.
func (f *loginFlags) proxies() (list []netip.Prefix, err error) {
	for _, text := range f.from {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			ip, bad := netip.ParseAddr(text)
			if bad != nil {
				return nil, usagef("--proxy-from %q: use an address or a prefix, such as 10.0.0.5 or 10.0.0.0/28", text)
			}
			prefix = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())
		}
		if prefix.Addr().Is4In6() {
			return nil, usagef("--proxy-from %q: use the form of IPv4, such as 10.0.0.0/28", text)
		}
		list = append(list, prefix)
	}
	return list, nil
}
