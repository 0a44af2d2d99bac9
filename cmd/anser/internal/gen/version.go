package gen

import (
	"runtime/debug"
	"strings"
)

// Version is the version in generated files: that of the command, or "development" for all builds
// that are not a release, so that their output does not differ.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || strings.ContainsAny(info.Main.Version, "+-()") {
		return "development"
	}
	return info.Main.Version
}
