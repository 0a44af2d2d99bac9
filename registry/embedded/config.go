package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// DefaultListen is the default of Config.Listen: loopback, on a free port.
const DefaultListen = "127.0.0.1:0"

// DefaultMinFree is the free disk space in bytes below which a member refuses writes: enough for a
// segment of its log, 64 MiB, and for the database to grow.
const DefaultMinFree = 128 << 20

// Config describes a member. Only Dir is required; the zero values of the other fields are useful.
type Config struct {
	// Dir is the data directory, used by one member only. It is created if it does not exist.
	Dir string
	// Listen is the address for clients, host:port; port 0 takes a free one, and clients that must
	// survive a restart need a fixed one. DefaultListen by default. Addresses other than loopback
	// require TLS or Insecure.
	Listen string
	// Advertise is the address returned by Endpoint, host:port, if it differs from Listen.
	Advertise string

	// Peers makes the member part of a larger cluster: it holds the addresses, host:port, at which
	// the members reach each other, by name. It is the same on all of them, three or five, and
	// cannot be changed here later. Addresses other than loopback require TLS or Insecure.
	Peers map[string]string
	// Name is the name of this member in Peers.
	Name string
	// PeerListen is the address at which this member listens for the others, Peers[Name] by
	// default.
	PeerListen string

	// TLS secures the connections of clients and of other members, all of which need certificates.
	TLS *TLS
	// Insecure allows addresses beyond loopback without TLS. Every process that can reach the port
	// can then change what the clients see.
	Insecure bool

	// Logger receives etcd's log: its warnings as Info, its errors as Error, the rest as Debug. By
	// default nothing is logged.
	Logger *slog.Logger
	// MinFree is the free disk space in bytes below which writes are refused until there is more;
	// reads, watches and leases continue. 0 means DefaultMinFree; a negative value turns the check
	// off.
	MinFree int64

	local bool                           // all members are in this process
	free  func(dir string) (int64, bool) // freeSpace; replaced by tests
	hasty bool                           // for tests: writes are not synced to the disk
}

// complete fills in defaults and validates the configuration.
func (c *Config) complete() error {
	if c.Dir == "" {
		return errors.New("embedded registry: no directory for its data: set Dir")
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.MinFree == 0 {
		c.MinFree = DefaultMinFree
	}
	if c.free == nil {
		c.free = freeSpace
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := c.checkListen("Listen", c.Listen); err != nil {
		return err
	}
	if c.Advertise != "" {
		if err := checkAddress("Advertise", c.Advertise); err != nil {
			return err
		}
	}
	if t := c.TLS; t != nil && (t.CertFile == "" || t.KeyFile == "" || t.CAFile == "") {
		return errors.New("embedded registry: TLS needs CertFile, KeyFile and CAFile")
	}
	return c.completePeers()
}

func (c *Config) completePeers() error {
	if len(c.Peers) == 0 {
		if c.Name != "" || c.PeerListen != "" {
			return errors.New("embedded registry: Name and PeerListen mean nothing without Peers: set it, or leave them out")
		}
		return nil
	}
	own, ok := c.Peers[c.Name]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(c.Peers)), ", ")
		return fmt.Errorf("embedded registry: Name is %q, but Peers are %s: use one of them", c.Name, names)
	}
	for name, address := range c.Peers {
		if name == "" || strings.ContainsAny(name, ",=") {
			return fmt.Errorf("embedded registry: peer name %q: use a name without comma and equals sign", name)
		}
		if err := checkAddress("Peers["+name+"]", address); err != nil {
			return err
		}
		if _, port, _ := net.SplitHostPort(address); port == "0" {
			return fmt.Errorf("embedded registry: Peers[%s] is %q: use a fixed port", name, address)
		}
	}
	if c.PeerListen == "" {
		c.PeerListen = own
	}
	return c.checkListen("PeerListen", c.PeerListen)
}

func checkAddress(field, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("embedded registry: %s is %q: use host:port", field, address)
	}
	return nil
}

// checkListen rejects an address that would open an unprotected port to the network.
func (c *Config) checkListen(field, address string) error {
	if err := checkAddress(field, address); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	if ip == nil && host != "localhost" {
		return fmt.Errorf("embedded registry: %s is %q: use the IP address of an interface, etcd takes no host name there", field, address)
	}
	if c.TLS != nil || c.Insecure || host == "localhost" || ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("embedded registry: %s is %q, which other hosts can reach: set TLS, or Insecure if the network is protected", field, address)
}

// embed returns etcd's form of the configuration.
func (c *Config) embed(s *streams, f *failure) *embed.Config {
	e := embed.NewConfig()
	e.Dir = c.Dir
	e.Name = "anser"
	e.ListenClientUrls = []url.URL{c.url(c.Listen)}
	e.AdvertiseClientUrls = []url.URL{c.url(cmp.Or(c.Advertise, c.Listen))}
	// A single member needs no listener for peers.
	e.ListenPeerUrls, e.AdvertisePeerUrls = nil, []url.URL{c.url(DefaultListen)}
	if len(c.Peers) > 0 {
		e.Name = c.Name
		e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{c.url(c.PeerListen)}, []url.URL{c.url(c.Peers[c.Name])}
	}
	e.InitialCluster = c.initialCluster(e)
	e.InitialClusterToken = "anser"
	if c.TLS != nil {
		info := transport.TLSInfo{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, TrustedCAFile: c.TLS.CAFile, ClientCertAuth: true}
		e.ClientTLSInfo, e.PeerTLSInfo = info, info
		e.TlsMinVersion = "TLS1.3"
	}
	// The history is kept for an hour: watches need seconds of it.
	e.AutoCompactionMode, e.AutoCompactionRetention = embed.CompactorModePeriodic, "1h"
	if c.local || len(c.Peers) == 0 {
		// There is no network in between: a shorter election timeout saves most of the time of a
		// start.
		e.TickMs, e.ElectionMs = 50, 500
	}
	e.UnsafeNoFsync = c.hasty
	e.EnableGRPCGateway = false
	e.GRPCAdditionalServerOptions = s.options()
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapTo(c.Logger, f))
	return e
}

func (c *Config) url(address string) url.URL {
	if c.TLS != nil {
		return url.URL{Scheme: "https", Host: address}
	}
	return url.URL{Scheme: "http", Host: address}
}

func (c *Config) initialCluster(e *embed.Config) string {
	if len(c.Peers) == 0 {
		return e.Name + "=" + e.AdvertisePeerUrls[0].String()
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Peers)) {
		peer := c.url(c.Peers[name])
		all = append(all, name+"="+peer.String())
	}
	return strings.Join(all, ",")
}
