package balance

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Here says where the client is, for Closest and LocalFirst.
type Here struct {
	// Zone is compared with the zones of the instances. Empty means that no instance is in the same one.
	Zone string
	// Hosts are the names and addresses that instances on this machine have. With nil they are the
	// machine's name and the addresses of its network interfaces, as they are when the balancer is
	// made. Loopback addresses and unix sockets are always here.
	Hosts []string
	// Latitude and Longitude are in degrees north and east, as those of instances. Both 0 means that they
	// are not known.
	Latitude, Longitude float64
	// Full is how many attempts of this client in flight make an instance of mean weight busy, so that
	// further calls go past it; 0 means 100. It is more for a heavier instance, and less for a lighter one.
	Full int
}

// DefaultFull is the number of attempts that Here.Full stands for when it is 0.
const DefaultFull = 100

func (h *Here) full() float64 {
	if h.Full <= 0 {
		return DefaultFull
	}
	return float64(h.Full)
}

func (h *Here) checkFull() error {
	if h.Full < 0 {
		return fmt.Errorf("an instance that is full with %d attempts: want at least 1, or 0 for %d", h.Full, DefaultFull)
	}
	return nil
}

func (h *Here) checkPosition() error {
	switch {
	case !validPosition(h.Latitude, h.Longitude):
		return fmt.Errorf("the client is at latitude %v and longitude %v: want degrees from -90 to 90 and from -180 to 180",
			h.Latitude, h.Longitude)
	case h.Latitude == 0 && h.Longitude == 0:
		return fmt.Errorf("where the client is, is not known: set Here.Latitude and Here.Longitude")
	}
	return nil
}

// validPosition is written so that NaN fails.
func validPosition(latitude, longitude float64) bool {
	return math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180
}

// distance returns the kilometres between the client and the instance along a great circle, or
// +Inf where one of the positions is not known.
func (h *Here) distance(in *registry.Instance) float64 {
	if h.checkPosition() != nil || !validPosition(in.Latitude, in.Longitude) || in.Latitude == 0 && in.Longitude == 0 {
		return math.Inf(1)
	}
	const earth, degree = 6371, math.Pi / 180
	a, b := h.Latitude*degree, in.Latitude*degree
	x := math.Sin((b - a) / 2)
	y := math.Sin((in.Longitude - h.Longitude) * degree / 2)
	return 2 * earth * math.Asin(math.Sqrt(min(x*x+math.Cos(a)*math.Cos(b)*y*y, 1)))
}

// hosts returns the hosts as a set.
func (h *Here) hosts() map[string]bool {
	list := h.Hosts
	if list == nil {
		list = ownHosts()
	}
	set := make(map[string]bool, len(list))
	for _, host := range list {
		set[plainHost(host)] = true
	}
	return set
}

// ownHosts returns what the operating system tells of this machine, which may be nothing.
func ownHosts() []string {
	var list []string
	if name, err := os.Hostname(); err == nil {
		list = append(list, name)
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			list = append(list, n.IP.String())
		}
	}
	return list
}

// isHere reports whether an address is on one of the hosts.
func isHere(hosts map[string]bool, address string) bool {
	if strings.HasPrefix(address, "unix://") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	host = plainHost(host)
	ip, err := netip.ParseAddr(host)
	return hosts[host] || host == "localhost" || err == nil && ip.IsLoopback()
}

// plainHost writes equal hosts in one way.
func plainHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
