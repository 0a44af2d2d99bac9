package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// newestFirst returns the instances by their versions, the highest first. Versions are compared
// number by number: 1.10 is newer than 1.9.
func newestFirst(instances []registry.Instance) []registry.Instance {
	list := slices.Clone(instances)
	slices.SortStableFunc(list, func(a, b registry.Instance) int { return compareVersions(b.Version, a.Version) })
	return list
}

func compareVersions(a, b string) int {
	x, y := strings.FieldsFunc(a, notOfVersion), strings.FieldsFunc(b, notOfVersion)
	return slices.CompareFunc(x, y, func(a, b string) int {
		n, errA := strconv.ParseUint(strings.TrimPrefix(a, "v"), 10, 64)
		m, errB := strconv.ParseUint(strings.TrimPrefix(b, "v"), 10, 64)
		if errA != nil || errB != nil {
			return strings.Compare(a, b)
		}
		return cmp.Compare(n, m)
	})
}

func notOfVersion(r rune) bool { return r == '.' || r == '-' || r == '+' }
