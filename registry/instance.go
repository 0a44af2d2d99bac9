package registry

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// State is the state of an instance; only instances that are Up want calls.
type State uint8

// The states.
const (
	Up       State = iota // wants calls
	Draining              // finishes the calls it has; clients choose others
	Disabled              // switched off by an operator
)

// String returns "up", "draining" or "disabled".
func (s State) String() string {
	switch s {
	case Up:
		return "up"
	case Draining:
		return "draining"
	case Disabled:
		return "disabled"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText writes the name of the state.
func (s State) MarshalText() ([]byte, error) {
	if s > Disabled {
		return nil, fmt.Errorf("unknown instance %v: want up, draining or disabled", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText parses the output of MarshalText; the empty text is Up.
func (s *State) UnmarshalText(text []byte) error {
	switch string(text) {
	case "up", "":
		*s = Up
	case "draining":
		*s = Draining
	case "disabled":
		*s = Disabled
	default:
		return fmt.Errorf("unknown instance state %q: want up, draining or disabled", text)
	}
	return nil
}

// DefaultWeight is the weight of an instance without one.
const DefaultWeight = 100

// Limits of an instance, so that its record fits into every registry.
const (
	MaxWeight   = 1_000_000
	MaxText     = 255      // bytes of a key, group, version or zone
	MaxTagBytes = 16 << 10 // bytes of all tags together, names and values
)

// Instance is one running server of a service. Only Service and Address are required; the zero
// values of the other fields are useful. Instances are values: an implementation that keeps one
// copies its Tags. The JSON form is the record that registries store; see Encode.
type Instance struct {
	// ID is unique among the instances of the service; empty means Address.
	ID      string `json:"id,omitempty"`
	Service string `json:"service"`
	// Address is "host:port" for TCP, "unix:///path", or "scheme://host:port" for another
	// transport, such as "quic://10.0.0.7:443" or "wss://10.0.0.7:443/anser".
	Address string `json:"address"`
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Zone    string `json:"zone,omitempty"`
	// Weight is the share of calls relative to the other instances; 0 means DefaultWeight.
	Weight    int               `json:"weight,omitempty"`
	State     State             `json:"state,omitempty"`
	Latitude  float64           `json:"latitude,omitempty"`  // degrees north
	Longitude float64           `json:"longitude,omitempty"` // degrees east
	Tags      map[string]string `json:"tags,omitempty"`
}

// Key returns ID, or Address if ID is empty.
func (in Instance) Key() string {
	if in.ID != "" {
		return in.ID
	}
	return in.Address
}

// EffectiveWeight returns Weight, or DefaultWeight if it is 0.
func (in Instance) EffectiveWeight() int {
	if in.Weight == 0 {
		return DefaultWeight
	}
	return in.Weight
}

// Equal reports whether both describe the same instance in the same state.
func (in Instance) Equal(o Instance) bool {
	a, b := in, o
	a.Tags, b.Tags = nil, nil
	a.ID, b.ID = in.Key(), o.Key()
	a.Weight, b.Weight = in.EffectiveWeight(), o.EffectiveWeight()
	return sameFields(a, b) && maps.Equal(in.Tags, o.Tags)
}

func sameFields(a, b Instance) bool {
	return a.ID == b.ID && a.Service == b.Service && a.Address == b.Address && a.Group == b.Group &&
		a.Version == b.Version && a.Zone == b.Zone && a.Weight == b.Weight && a.State == b.State &&
		a.Latitude == b.Latitude && a.Longitude == b.Longitude
}

// Clone returns a copy that shares nothing with in.
func (in Instance) Clone() Instance {
	in.Tags = maps.Clone(in.Tags)
	return in
}

// Validate returns an error if the instance is invalid. Every implementation refuses to register
// an invalid instance.
func (in Instance) Validate() error {
	if err := CheckService(in.Service); err != nil {
		return err
	}
	if err := CheckAddress(in.Address); err != nil {
		return err
	}
	if err := in.checkTexts(); err != nil {
		return err
	}
	if in.Weight < 0 || in.Weight > MaxWeight {
		return fmt.Errorf("instance %q has weight %d: want 0 to %d", in.Key(), in.Weight, MaxWeight)
	}
	if in.State > Disabled {
		return fmt.Errorf("instance %q has the unknown %v: want up, draining or disabled", in.Key(), in.State)
	}
	// The condition is written so that NaN, which JSON cannot encode, fails, too.
	if !(math.Abs(in.Latitude) <= 90) {
		return fmt.Errorf("instance %q has latitude %v: want degrees from -90 to 90", in.Key(), in.Latitude)
	}
	if !(math.Abs(in.Longitude) <= 180) {
		return fmt.Errorf("instance %q has longitude %v: want degrees from -180 to 180", in.Key(), in.Longitude)
	}
	return nil
}

func (in Instance) checkTexts() error {
	texts := []struct{ name, text string }{
		{"ID", in.Key()}, {"group", in.Group}, {"version", in.Version}, {"zone", in.Zone},
	}
	for _, t := range texts {
		if len(t.text) > MaxText {
			return fmt.Errorf("instance %.40q… has a %s of %d bytes: at most %d", in.Key(), t.name, len(t.text), MaxText)
		}
		if !printable(t.text) {
			return fmt.Errorf("instance %q has the %s %q: use UTF-8 without control characters", in.Key(), t.name, t.text)
		}
	}
	size := 0
	for k, v := range in.Tags {
		size += len(k) + len(v)
		if k == "" || !printable(k) || !utf8.ValidString(v) {
			return fmt.Errorf("instance %q has the tag %q=%q: a tag has a name, and both are UTF-8", in.Key(), k, v)
		}
	}
	if size > MaxTagBytes {
		return fmt.Errorf("instance %q has %d bytes of tags: at most %d", in.Key(), size, MaxTagBytes)
	}
	return nil
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// CheckService returns an error if the name of a service is invalid. A name has 1 to 255 bytes:
// letters, digits and - _ . so that it is a path segment in every registry.
func CheckService(name string) error {
	if name == "" {
		return errors.New("the service has no name: give one, for example \"arith\"")
	}
	if len(name) > 255 {
		return fmt.Errorf("service name of %d bytes is too long: at most 255", len(name))
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.' {
			return fmt.Errorf("service name %q has the character %q: use letters, digits, dot, dash and underscore", name, r)
		}
	}
	return nil
}

// CheckAddress returns an error if the address of an instance is invalid. Valid are "host:port",
// "unix:///path", and for other transports "scheme://host:port", with a path if the transport has
// one.
func CheckAddress(address string) error {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if path == "" {
			return fmt.Errorf("address %q has no path: use unix:///path", address)
		}
		return nil
	}
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		if !isScheme(scheme) {
			return fmt.Errorf("address %q has the scheme %q: use lower-case letters and digits", address, scheme)
		}
		rest, _, _ = strings.Cut(rest, "/")
		if strings.Contains(rest, "://") || strings.ContainsFunc(address, unicode.IsSpace) {
			return fmt.Errorf("address %q: use %s://host:port or %s://host:port/path", address, scheme, scheme)
		}
		return CheckAddress(rest)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil && strings.Count(address, ":") > 1 {
		return fmt.Errorf("address %q has too many colons: use host:port, and [host]:port for IPv6", address)
	}
	if err != nil || port == "" {
		return fmt.Errorf("address %q has no port: use host:port", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %q has the port %q that no client could dial: use 1 to 65535", address, port)
	}
	if host == "" || strings.ContainsFunc(host, unicode.IsSpace) {
		return fmt.Errorf("address %q has no host that a client could dial: use host:port", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return fmt.Errorf("address %q means every interface, which no client can dial: use the host's own address", address)
	}
	return nil
}

func isScheme(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}
