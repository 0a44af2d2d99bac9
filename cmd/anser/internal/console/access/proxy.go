package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// ProxyOptions describe a proxy that logs users in and names them in a header.
type ProxyOptions struct {
	Header string         // with the name of the user, such as X-Forwarded-User
	Roles  string         // header with the role; empty means none
	Role   Role           // of users without that header; 0 means that they are refused
	From   []netip.Prefix // addresses of the proxy; required
}

func (o *ProxyOptions) check() error {
	switch {
	case o.Header == "":
		return errors.New("the console: the header of the proxy has no name: use for example X-Forwarded-User")
	case !isHeader(o.Header), o.Roles != "" && !isHeader(o.Roles):
		name := o.Header
		if isHeader(name) {
			name = o.Roles
		}
		return fmt.Errorf("the console: %q is no header that a proxy can name users in: use letters, digits and dashes, such as X-Forwarded-User", name)
	case strings.EqualFold(o.Header, o.Roles):
		return fmt.Errorf("the console: %s has both the user and the role: use two headers", o.Header)
	case len(o.From) == 0:
		return errors.New("the console: the addresses of the proxy are missing, and any client could send its header: name them with --proxy-from")
	case o.Role > Administer:
		return fmt.Errorf("the console: users of the proxy have the unknown %v", o.Role)
	case o.Role == 0 && o.Roles == "":
		return errors.New("the console: users of the proxy have no role: give one, or name the header that has it")
	}
	return nil
}

// isHeader reports whether requests can have a header, and only one that proxies read in the same
// way: some take an underscore for a dash.
func isHeader(name string) bool {
	return !strings.EqualFold(name, "Host") && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
}

// ProxyBound is how long a request of [Access.Wrap] may be open if a proxy logs users in: the
// console does not learn of a logout, and the next request has the user and the role anew. Pages
// open their streams again.
const ProxyBound = time.Minute

// user returns the user that the proxy names.
func (o *ProxyOptions) user(r *http.Request) (User, *respond.Error) {
	if !within(o.From, peer(r)) {
		return User{}, respond.Problem(http.StatusForbidden, "the request does not come from the proxy that logs users in", "use the address of the proxy")
	}
	names := r.Header.Values(o.Header)
	if len(names) != 1 || checkForm(names[0]) != nil {
		return User{}, respond.Problem(http.StatusUnauthorized, "the proxy names no user in "+o.Header, "log in at the proxy")
	}
	if err := checkName(names[0]); err != nil {
		return User{}, respond.Problem(http.StatusForbidden, "the proxy gives the user a name that the console does not take: "+err.Error(), "ask the administrator of the proxy")
	}
	u := User{Name: names[0], Role: o.Role}
	if roles := r.Header.Values(o.Roles); o.Roles != "" && len(roles) > 0 {
		if len(roles) > 1 || u.Role.UnmarshalText([]byte(roles[0])) != nil {
			return User{}, respond.Problem(http.StatusForbidden, "the proxy gives the user a role that the console does not know", "it is look, operate or administer in "+o.Roles)
		}
	}
	if u.Role == 0 {
		return User{}, respond.Problem(http.StatusForbidden, u.Name+" has no role in the console", "the proxy says it in "+o.Roles)
	}
	return u, nil
}
