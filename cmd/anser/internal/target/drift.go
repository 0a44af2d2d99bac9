package target

import (
	"maps"
	"slices"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// Fingerprints returns the fingerprints of contracts that an instance tells in its tags, by the
// full names of methods.
func Fingerprints(in *registry.Instance) map[string]string {
	prints := make(map[string]string)
	for tag, value := range in.Tags {
		service, ok := strings.CutPrefix(tag, anser.ContractTag)
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(value, ",") {
			method, print, _ := strings.Cut(pair, "=")
			prints[service+"."+method] = print
		}
	}
	return prints
}

// Drift is a method whose contract is not the same in all instances of a service.
type Drift struct {
	Method string
	Sides  [][]string // the keys of instances with the same contract
}

// DriftOf returns the methods whose fingerprints differ, sorted. The arguments are fingerprints by
// method, by the keys of the instances; an instance without one for a method is left out.
func DriftOf(prints map[string]map[string]string) []Drift {
	methods := make(map[string]map[string][]string) // keys, by method, then by fingerprint
	for _, key := range slices.Sorted(maps.Keys(prints)) {
		for method, print := range prints[key] {
			if methods[method] == nil {
				methods[method] = make(map[string][]string)
			}
			methods[method][print] = append(methods[method][print], key)
		}
	}
	var list []Drift
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		if len(methods[method]) < 2 {
			continue
		}
		d := Drift{Method: method}
		for _, print := range slices.Sorted(maps.Keys(methods[method])) {
			d.Sides = append(d.Sides, methods[method][print])
		}
		list = append(list, d)
	}
	return list
}

// String writes the sides for people: "a, b against c".
func (d *Drift) String() string {
	sides := make([]string, len(d.Sides))
	for i, keys := range d.Sides {
		sides[i] = strings.Join(keys, ", ")
	}
	return strings.Join(sides, " against ")
}
