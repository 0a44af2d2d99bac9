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

// DefaultListen is where clients are served unless Config.Listen says otherwise: at a free port.
const DefaultListen = "127.0.0.1:0"

// DefaultMinFree is the free space on disk below which a member refuses writes: room for a segment
// of its log, 64 MiB, and for the database to grow.
const DefaultMinFree = 128 << 20

// Config describes a member. The zero values of everything but Dir are useful.
type Config struct {
	// Dir holds the data, and belongs to one member. It is made if it is not there.
	Dir string
	// Listen is where clients are served, host:port; port 0 takes a free one. Clients that outlive
	// a restart need a fixed one. DefaultListen by default. Anything but loopback needs TLS or
	// Insecure.
	Listen string
	// Advertise is the address that Endpoint gives out, host:port, where it is not Listen.
	Advertise string

	// Peers makes the member one of several: the addresses, host:port, at which the members speak
	// to each other, by name. It is the same on all of them, three or five, and cannot be changed
	// here later. Addresses that are not loopback need TLS or Insecure.
	Peers map[string]string
	// Name says which of Peers this member is.
	Name string
	// PeerListen is where this member listens for the others, Peers[Name] by default.
	PeerListen string

	// TLS is used with clients and other members, both of which need certificates.
	TLS *TLS
	// Insecure allows to listen beyond loopback without TLS. Whoever reaches the port can then
	// change what every client sees.
	Insecure bool

	// Logger is told what etcd has to say: its warnings as Info, the rest as Debug, errors as such.
	// Nobody is told by default.
	Logger *slog.Logger
	// MinFree is the free space in bytes below which writes are refused, until there is more again;
	// reads, watches and leases go on. DefaultMinFree by default, none if negative.
	MinFree int64

	local bool                           // all members are in this process
	free  func(dir string) (int64, bool) // freeSpace, but for tests
	hasty bool                           // for tests: nothing waits for the disk
}

// complete fills in defaults and says what is wrong.
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

// checkListen refuses to open a port to the network that nothing guards.
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
	return fmt.Errorf("embedded registry: %s is %q, which others can reach: set TLS, or Insecure if the network is guarded", field, address)
}

// embed returns what etcd makes of the configuration.
func (c *Config) embed(s *streams, f *failure) *embed.Config {
	e := embed.NewConfig()
	e.Dir = c.Dir
	e.Name = "anser"
	e.ListenClientUrls = []url.URL{c.url(c.Listen)}
	e.AdvertiseClientUrls = []url.URL{c.url(cmp.Or(c.Advertise, c.Listen))}
	// A member alone has nobody to listen for.
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
	// The past is kept for an hour: watches need seconds of it.
	e.AutoCompactionMode, e.AutoCompactionRetention = embed.CompactorModePeriodic, "1h"
	if c.local || len(c.Peers) == 0 {
		// No network in between: a leader is missed sooner, which is most of the time a start takes.
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
