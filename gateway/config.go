package gateway

import (
	"time"
)

// Config is the configuration of a gateway; see [Parse]. The zero value serves all services of the
// registry, to all callers that reach its port.
type Config struct {
	// Listen is the address, host:port. It cannot change while the gateway runs.
	Listen string `yaml:"listen,omitempty"`
	// Services are the services of the registry that are served; none means all.
	Services []string `yaml:"services,omitempty"`
	// Routes are tried in this order; the first one that matches a request decides where it goes. A
	// call that none matches goes to the service that has the method, and any other request
	// nowhere.
	Routes []Route `yaml:"routes,omitempty"`
	TLS    *TLS    `yaml:"tls,omitempty"`
	Auth   *Auth   `yaml:"auth,omitempty"`
	Limits Limits  `yaml:"limits,omitempty"`
	CORS   CORS    `yaml:"cors,omitempty"`
	// Hosts are the hosts under which browsers reach the gateway, in addition to IP addresses,
	// localhost and the hosts of routes. On a loopback address, requests for others that a page
	// could make are refused: see protocols.AllowHosts.
	Hosts []string `yaml:"hosts,omitempty"`
	// MCP offers methods as tools to agents, at /mcp; nil offers none.
	MCP *MCP `yaml:"mcp,omitempty"`
	// AccessLog writes a line for each call; nil writes none. It can change while the gateway
	// runs, but not be added or removed.
	AccessLog *AccessLog `yaml:"access_log,omitempty"`
	// Timeout is how long a call may take whose caller sets no deadline; 0 means 10 s. Streams have
	// no such limit.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// Retries bounds the attempts that the gateway makes in addition to the first ones.
	Retries *Retries `yaml:"retries,omitempty"`
	// Record keeps a sample of the calls in files; nil keeps none. It cannot change while the
	// gateway runs.
	Record *Record `yaml:"record,omitempty"`

	name string         // of the file, for errors
	text []byte         // of which it was parsed
	line map[string]int // of the parts, by their paths
}

// Route sends the requests that match all of its conditions to one of its destinations.
type Route struct {
	// Name is for people, in errors and logs.
	Name string `yaml:"name,omitempty"`
	// Host is the host of the request without its port: "api.example.org", or "*.example.org" for
	// all hosts below it; "" matches all. Only HTTP requests have one.
	Host string `yaml:"host,omitempty"`
	// Path is the beginning of the path, up to a slash or its end: "/shop" matches "/shop/cart" and
	// not "/shopping". Calls have the path of their protocol: "/arith/Arith.Mul" or "/Arith.Mul"
	// in JSON, "/Arith/Mul" in gRPC, Connect and Anser's own.
	Path string `yaml:"path,omitempty"`
	// Strip takes the path of the route away from that of the request.
	Strip bool `yaml:"strip,omitempty"`
	// Headers are headers, or keys of metadata, with their values. "*" matches every value.
	Headers map[string]string `yaml:"headers,omitempty"`
	// To are the destinations, which share the requests by their weights.
	To []Destination `yaml:"to,omitempty"`
}

// Destination is where a route leads: to instances of a service, or to an HTTP server.
type Destination struct {
	Service string `yaml:"service,omitempty"`
	// Group and Version restrict the instances.
	Group   string `yaml:"group,omitempty"`
	Version string `yaml:"version,omitempty"`
	// URL is the address of an HTTP server, to which the request goes as it is: "http://10.0.0.7:80".
	URL string `yaml:"url,omitempty"`
	// Weight is the share of the requests; all destinations without one have the same share.
	Weight *int `yaml:"weight,omitempty"`
}

// TLS is how the port is protected. The files are read again when they change.
type TLS struct {
	// Certificates are chosen by the name that the client asks for; the first is for all others.
	Certificates []Certificate `yaml:"certificates,omitempty"`
	// ClientCAs are PEM files with authorities. With them, each client needs a certificate of one
	// of them, which is its identity.
	ClientCAs []string `yaml:"client_cas,omitempty"`
	// TLS12 allows TLS 1.2; otherwise the minimum is 1.3.
	TLS12 bool `yaml:"tls12,omitempty"`
}

// Certificate is a certificate with its key, as PEM files.
type Certificate struct {
	Chain string `yaml:"chain"`
	Key   string `yaml:"key"`
}

// Auth is how callers show their identities. Of several ways, each caller uses one.
type Auth struct {
	// Tokens is a file of API keys; see auth.OpenTokens. It is read again when it changes.
	Tokens string `yaml:"tokens,omitempty"`
	// JWT accepts JSON Web Tokens.
	JWT *JWT `yaml:"jwt,omitempty"`
	// Policy is a file of rules that say which callers may call which methods; see
	// auth.OpenPolicy. Without it, every identity may call everything.
	Policy string `yaml:"policy,omitempty"`
}

// JWT is an issuer of JSON Web Tokens.
type JWT struct {
	Issuer   string   `yaml:"issuer"`
	Audience string   `yaml:"audience"`
	Keys     []JWTKey `yaml:"keys"`
	// Groups is the claim with the groups; "" means "groups".
	Groups string `yaml:"groups,omitempty"`
}

// JWTKey is the public key of an issuer, as a PEM file.
type JWTKey struct {
	ID   string `yaml:"id,omitempty"` // "kid" of the tokens
	File string `yaml:"file"`
}

// Limits bound what callers may do. Zero values mean the limits of the server.
type Limits struct {
	// Caller bounds the calls of each caller: of an identity, or without Auth of an address.
	Caller *Rate `yaml:"caller,omitempty"`
	// Service bounds the calls at once of each service, so that callers that wait for a slow one
	// leave room for those of the others. 0 means nine tenths of Calls if the gateway has more than
	// one service, and otherwise all.
	Service int `yaml:"service,omitempty"`
	// Conns, Calls and Message bound the connections, the calls at once, and the bytes of a
	// message. They cannot change while the gateway runs.
	Conns   int `yaml:"conns,omitempty"`
	Calls   int `yaml:"calls,omitempty"`
	Message int `yaml:"message,omitempty"`
}

// Rate is a number of calls per second.
type Rate struct {
	PerSecond float64 `yaml:"per_second"`
	Burst     int     `yaml:"burst,omitempty"` // calls at once; 0 means as many as per second
}

// CORS says which pages may call from a browser.
type CORS struct {
	Origins []string `yaml:"origins,omitempty"` // "https://app.example.org", or "*" for all
}

// MCP says which methods are tools over the Model Context Protocol. A caller sees those of them
// that it may call.
type MCP struct {
	// Allow are patterns for the names of methods, such as "orders.v1.Orders.Get*"; a pattern that
	// begins with ! takes methods away.
	Allow []string `yaml:"allow,omitempty"`
	// Compact offers three tools, to search, describe and call methods, in place of one for each.
	Compact bool `yaml:"compact,omitempty"`
	// Resources offers the services, and the counts of tools, as what can be read.
	Resources bool `yaml:"resources,omitempty"`
}

// AccessLog says which calls are logged.
type AccessLog struct {
	Sample *float64      `yaml:"sample,omitempty"` // share of the calls that succeed; nil means all
	Slow   time.Duration `yaml:"slow,omitempty"`   // calls of this time are always logged; 0 means 1 s
}

// Retries is the budget of the attempts of each service. It cannot change while the gateway runs.
type Retries struct {
	Ratio     float64 `yaml:"ratio"`      // of the calls
	PerSecond float64 `yaml:"per_second"` // in addition
}

const defaultTimeout = 10 * time.Second
