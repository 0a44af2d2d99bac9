package telemetry

import (
	"net/url"
	"strings"
)

// TargetName returns a target as a [Meter] names it: without its password.
func TargetName(target string) string {
	if !strings.Contains(target, "@") {
		return target
	}
	u, err := url.Parse(target)
	if err != nil || u.User == nil {
		return target // no client was made with it, or it has none
	}
	return u.Redacted()
}
