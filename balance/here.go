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

// Here is the location of the client, for Closest and LocalFirst.
type Here struct {
	// Zone is compared with the zones of the instances. If it is empty, no instance is in the same
	// zone.
	Zone string
	// Hosts are the names and addresses of instances on this machine. Nil means the machine's name
	// and the addresses of its network interfaces at the time the balancer is created. Loopback
	// addresses and Unix sockets are always local.
	Hosts []string
	// Latitude and Longitude are in degrees north and east, as in instances. If both are 0, the
	// position is unknown.
	Latitude, Longitude float64
	// Full is the number of this client's attempts in flight at which an instance of mean weight
	// is busy, so that further calls skip it; 0 means 100. It is scaled by the weight of the
	// instance.
	Full int
}

// DefaultFull is the value of Here.Full if that is 0.
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
		return fmt.Errorf("the client's position is unknown: set Here.Latitude and Here.Longitude")
	}
	return nil
}

// validPosition is written so that NaN is invalid.
func validPosition(latitude, longitude float64) bool {
	return math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180
}

// distance returns the distance between the client and the instance along a great circle in
// kilometres, or +Inf if one of the positions is unknown.
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

// ownHosts returns the names and addresses of this machine according to the operating system,
// possibly none.
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

// plainHost normalizes a host, so that equal hosts are equal strings.
func plainHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
