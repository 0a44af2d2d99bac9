package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/namepattern"
	"github.com/anser-rpc/anser/registry"
)

// mistakes returns what is wrong with the configuration, with the lines.
func (c *Config) mistakes() []error {
	m := &mistakes{config: c}
	for i, name := range c.Services {
		if err := registry.CheckService(name); err != nil {
			m.add(fmt.Sprintf("services[%d]", i), "%v", err)
		}
	}
	for i := range c.Routes {
		m.route(i)
	}
	m.twins()
	m.tls(time.Now())
	m.auth()
	m.tools()
	for i, host := range c.Hosts {
		m.host(fmt.Sprintf("hosts[%d]", i), host)
	}
	m.rest()
	return m.list
}

// mistakes collects errors.
type mistakes struct {
	config *Config
	list   []error
}

func (m *mistakes) add(path, format string, args ...any) {
	if len(m.list) < maxProblems {
		m.list = append(m.list, fmt.Errorf("%s%s", m.config.at(path), fmt.Sprintf(format, args...)))
	}
}

// route checks a route by itself.
func (m *mistakes) route(i int) {
	r, path := &m.config.Routes[i], fmt.Sprintf("routes[%d]", i)
	if r.Host != "" {
		m.host(path+".host", r.Host)
	}
	if r.Path != "" && (!strings.HasPrefix(r.Path, "/") || strings.ContainsAny(r.Path, "?#*% ")) {
		m.add(path+".path", "the path %q is not valid: it begins with a slash, and matches what begins with it; there are no patterns", r.Path)
	}
	if r.Strip && strings.Trim(r.Path, "/") == "" {
		m.add(path+".strip", "there is no path to strip: give the route a path")
	}
	for name := range r.Headers {
		if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, " :") {
			m.add(path+".headers", "the header %q is not valid: write its name in lower case", name)
		}
	}
	if len(r.To) == 0 {
		m.add(path, "%s leads to nothing: give it a destination (to)", m.config.title(i))
		return
	}
	sum, calls := 0, 0
	for j := range r.To {
		m.destination(&r.To[j], fmt.Sprintf("%s.to[%d]", path, j))
		sum += r.To[j].weight()
		if r.To[j].URL == "" {
			calls++
		}
	}
	if sum == 0 {
		m.add(path+".to", "%s leads to nothing: the weights of all destinations are 0", m.config.title(i))
	}
	if calls > 0 && calls < len(r.To) {
		m.add(path+".to", "the destinations are services and a url: a request is a call or not, so use two routes")
	}
}

func (m *mistakes) host(path, host string) {
	name := strings.TrimPrefix(host, "*.")
	wrong := strings.ContainsAny(name, "*/: ") || name != strings.ToLower(name) || slices.Contains(strings.Split(name, "."), "") ||
		strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII })
	if wrong {
		m.add(path, "the host %q is not valid: use a name in lower case without a port (xn--… for one with other letters), or *.example.org for all below it", host)
	}
}

// tools checks what is offered to agents.
func (m *mistakes) tools() {
	t := m.config.MCP
	if t == nil {
		return
	}
	if !slices.ContainsFunc(t.Allow, func(p string) bool { return !strings.HasPrefix(p, "!") }) {
		m.add("mcp", "no method is a tool: allow some, such as Orders.Get*")
	}
	for i, p := range t.Allow {
		if err := namepattern.Check(p); err != nil {
			m.add(fmt.Sprintf("mcp.allow[%d]", i), "%v", err)
		}
	}
}

func (m *mistakes) destination(d *Destination, path string) {
	switch {
	case d.URL != "" && d.Service+d.Group+d.Version != "":
		m.add(path, "a destination is a service or a url, and not both")
	case d.URL != "":
		u, err := url.Parse(d.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			m.add(path+".url", "the url %q is not that of an HTTP server: use http://host:port, or https", d.URL)
		}
	case d.Service == "":
		m.add(path, "the destination is empty: name a service or a url")
	default:
		if err := registry.CheckService(d.Service); err != nil {
			m.add(path+".service", "%v", err)
		} else if s := m.config.Services; len(s) > 0 && !slices.Contains(s, d.Service) {
			m.add(path+".service", "the service %q is not one of those under services, so nothing is there", d.Service)
		}
	}
	if d.Weight != nil && (*d.Weight < 0 || *d.Weight > 1_000_000) {
		m.add(path+".weight", "the weight %d is out of range: want 0 to 1000000", *d.Weight)
	}
}

// twins finds routes that match the same requests, and routes that never match since an earlier one
// takes all that they would.
func (m *mistakes) twins() {
	routes := m.config.Routes
	for j := range routes {
		for i := range routes[:j] {
			a, b := &routes[i], &routes[j]
			path := fmt.Sprintf("routes[%d]", j)
			if a.covers(b) && b.covers(a) {
				m.add(path, "%s matches the same as %s: remove one of them", m.config.title(j), m.config.title(i))
			} else if a.covers(b) {
				m.add(path, "%s matches nothing: %s comes first, and takes all that it would; put it behind this one", m.config.title(j), m.config.title(i))
			} else {
				continue
			}
			break
		}
	}
}

// title names a route.
func (c *Config) title(i int) string {
	if name := c.Routes[i].Name; name != "" {
		return fmt.Sprintf("route %q", name)
	}
	if line := c.line[fmt.Sprintf("routes[%d]", i)]; line > 0 {
		return fmt.Sprintf("the route of line %d", line)
	}
	return fmt.Sprintf("route %d", i+1)
}

// tls checks the certificates.
func (m *mistakes) tls(now time.Time) {
	t := m.config.TLS
	if t == nil {
		return
	}
	if len(t.Certificates) == 0 {
		m.add("tls", "there are no certificates: add one, or remove tls")
	}
	for i, c := range t.Certificates {
		path := fmt.Sprintf("tls.certificates[%d]", i)
		pair, err := tls.LoadX509KeyPair(c.Chain, c.Key)
		if err != nil {
			m.add(path, "%v", err)
			continue
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		switch {
		case err != nil:
			m.add(path, "%s: %v", c.Chain, err)
		case now.After(leaf.NotAfter):
			m.add(path, "the certificate in %s expired on %s: renew it", c.Chain, leaf.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(leaf.NotBefore):
			m.add(path, "the certificate in %s is not valid before %s", c.Chain, leaf.NotBefore.UTC().Format(time.RFC3339))
		}
	}
}

// auth checks the files of the authentication.
func (m *mistakes) auth() {
	a := m.config.Auth
	if a == nil {
		return
	}
	if a.Tokens == "" && a.JWT == nil && (m.config.TLS == nil || len(m.config.TLS.ClientCAs) == 0) {
		m.add("auth", "no caller could show its identity: add tokens or jwt here, or client_cas under tls")
	}
	if a.Tokens != "" {
		if t, err := auth.OpenTokens(a.Tokens); err != nil {
			m.add("auth.tokens", "%v", err)
		} else {
			t.Close()
		}
	}
	if a.JWT != nil {
		if _, err := a.JWT.verifier(); err != nil {
			m.add("auth.jwt", "%v", err)
		}
	}
	if a.Policy != "" {
		if p, err := auth.OpenPolicy(a.Policy); err != nil {
			m.add("auth.policy", "%v", err)
		} else {
			p.Close()
		}
	}
}

// rest checks the numbers.
func (m *mistakes) rest() {
	c := m.config
	if r := c.Limits.Caller; r != nil && (!(r.PerSecond > 0) || r.Burst < 0) {
		m.add("limits.caller", "want per_second above 0, and a burst of 1 or more")
	}
	for path, n := range map[string]int{
		"limits.service": c.Limits.Service, "limits.conns": c.Limits.Conns, "limits.calls": c.Limits.Calls, "limits.message": c.Limits.Message,
	} {
		if n < 0 {
			m.add(path, "%d is below 0", n)
		}
	}
	for i, origin := range c.CORS.Origins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Host == "" || u.Scheme == "" || u.Path != "") {
			m.add(fmt.Sprintf("cors.origins[%d]", i), "the origin %q is not valid: use https://host, or \"*\" for all", origin)
		}
	}
	if a := c.AccessLog; a != nil && (a.Sample != nil && !(*a.Sample >= 0 && *a.Sample <= 1) || a.Slow < 0) {
		m.add("access_log", "want a sample from 0 to 1, and slow above 0")
	}
	if r := c.Record; r != nil {
		m.record(r)
	}
	if c.Timeout < 0 {
		m.add("timeout", "%v is below 0", c.Timeout)
	}
	if r := c.Retries; r != nil && (!(r.Ratio >= 0 && r.Ratio <= 1) || !(r.PerSecond >= 0)) {
		m.add("retries", "want a ratio from 0 to 1, and per_second of 0 or more")
	}
}
