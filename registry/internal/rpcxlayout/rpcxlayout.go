// Package rpcxlayout has the form in which rpcx keeps its servers in a registry: a key
// base/service/network@address, whose value is the metadata of the server as the query of a URL.
package rpcxlayout

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Keys of metadata with a meaning in rpcx.
const (
	stateKey     = "state" // "inactive"
	weightKey    = "weight"
	groupKey     = "group"
	latitudeKey  = "latitude"
	longitudeKey = "longitude"
)

// Keys of metadata for what rpcx has no place for. A server without addressKey speaks rpcx only.
const (
	addressKey = "anser" // the address at which it speaks Anser's protocol
	idKey      = "anser-id"
	ourState   = "anser-state"
	ourWeight  = "anser-weight"
	versionKey = "version"
	zoneKey    = "zone"
)

// counters are metadata that rpcx's plugins renew all the time.
var counters = []string{"tps", "calls", "connections"}

// scheme is the scheme of the addresses of servers that speak rpcx only.
const scheme = "rpcx"

// weightOfOne is the weight of rpcx's weight 1, which a server without one has there.
const weightOfOne = registry.DefaultWeight

// maxValue is the size of the largest value that Decode accepts.
const maxValue = registry.MaxRecordBytes

// Name returns the last part of the key of an instance.
func Name(in registry.Instance) (string, error) {
	_, address, ok := strings.Cut(in.Address, "://")
	if !ok {
		address = in.Address
	}
	if strings.HasPrefix(in.Address, "unix:") || strings.Contains(address, "/") || strings.ContainsAny(address, "@\x00") {
		return "", fmt.Errorf("instance %q has the address %q, which rpcx has no place for: want host:port", in.Key(), in.Address)
	}
	return "tcp@" + address, nil
}

// Encode returns the value of an instance. extra is added to the metadata.
func Encode(in registry.Instance, extra url.Values) ([]byte, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	q := make(url.Values)
	for k, v := range in.Tags {
		if slices.Contains(known, k) {
			return nil, fmt.Errorf("instance %q has the tag %q, which means something else to rpcx: give it another name", in.Key(), k)
		}
		q.Set(k, v)
	}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	if !strings.HasPrefix(in.Address, scheme+"://") {
		set(addressKey, in.Address)
	}
	set(idKey, in.ID)
	set(groupKey, in.Group)
	set(versionKey, in.Version)
	set(zoneKey, in.Zone)
	if in.Weight != 0 {
		set(weightKey, strconv.Itoa(max(1, (in.Weight+weightOfOne/2)/weightOfOne)))
		if in.Weight%weightOfOne != 0 {
			set(ourWeight, strconv.Itoa(in.Weight))
		}
	}
	if in.State != registry.Up {
		set(stateKey, "inactive")
	}
	if in.State == registry.Draining {
		set(ourState, in.State.String())
	}
	if in.Latitude != 0 || in.Longitude != 0 {
		set(latitudeKey, strconv.FormatFloat(in.Latitude, 'g', -1, 64))
		set(longitudeKey, strconv.FormatFloat(in.Longitude, 'g', -1, 64))
	}
	maps.Copy(q, extra)
	return []byte(q.Encode()), nil
}

// IsServer reports whether the last part of a key is the name of a server. rpcx's plugins write
// other keys too.
func IsServer(name string) bool { return strings.Contains(name, "@") && !strings.Contains(name, "/") }

// Decode returns the instance of a service with a name and a value. own are keys of metadata that
// are left out.
func Decode(service, name string, value []byte, own ...string) (registry.Instance, error) {
	in, err := decode(service, name, value, own)
	if err == nil {
		err = in.Validate()
	}
	if err != nil {
		return in, fmt.Errorf("the server %.100q of the service %q in the layout of rpcx: %w", name, service, err)
	}
	return in, nil
}

func decode(service, name string, value []byte, own []string) (registry.Instance, error) {
	in := registry.Instance{Service: service}
	network, address, ok := strings.Cut(name, "@")
	if !ok || len(value) > maxValue {
		return in, errors.New("it is not a network@address with a short value")
	}
	q, err := url.ParseQuery(string(value))
	if err != nil {
		return in, fmt.Errorf("its metadata is not a query of a URL: %w", err)
	}
	if in.Address = q.Get(addressKey); in.Address == "" {
		if network != "tcp" && network != "tcp4" && network != "tcp6" {
			return in, fmt.Errorf("it is reached by %q: clients of Anser call servers of rpcx by tcp", network)
		}
		in.Address = scheme + "://" + address
	}
	in.ID, in.Group, in.Version, in.Zone = q.Get(idKey), q.Get(groupKey), q.Get(versionKey), q.Get(zoneKey)
	if in.Weight, err = weightOf(q); err != nil {
		return in, err
	}
	if q.Get(stateKey) == "inactive" {
		in.State = registry.Disabled
		if q.Get(ourState) == registry.Draining.String() {
			in.State = registry.Draining
		}
	}
	in.Latitude, in.Longitude = degrees(q.Get(latitudeKey)), degrees(q.Get(longitudeKey))
	for k := range q {
		if !slices.Contains(counters, k) && !slices.Contains(known, k) && !slices.Contains(own, k) && k != "" {
			if in.Tags == nil {
				in.Tags = make(map[string]string)
			}
			in.Tags[k] = q.Get(k)
		}
	}
	return in, nil
}

var known = []string{stateKey, weightKey, groupKey, latitudeKey, longitudeKey, addressKey, idKey, ourState, ourWeight, versionKey, zoneKey}

// weightOf returns the weight in Anser's measure.
func weightOf(q url.Values) (int, error) {
	if text := q.Get(ourWeight); text != "" {
		return strconv.Atoi(text)
	}
	text := q.Get(weightKey)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("its weight %.20q is not a number: want 1 or more", text)
	}
	return min(max(n, 1), registry.MaxWeight/weightOfOne) * weightOfOne, nil
}

// degrees returns an angle, or 0 if there is none.
func degrees(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return 0
	}
	return f
}
