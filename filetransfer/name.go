package filetransfer

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anser-rpc/anser"
)

// partPrefix begins the names of unfinished files. Paths must not use it.
const partPrefix = ".anser-"

// maxPath is the maximum length of a path in bytes.
const maxPath = 4096

// checkPath rejects paths that are not valid inside a root on every system, so that a folder can
// move to another system. os.Root makes sure that a path stays inside; the paths rejected here get
// a clear error, and never reach the operating system.
func checkPath(p string) error {
	if err := checkText(p); err != nil {
		return err
	}
	reason := ""
	switch {
	case p == "":
		reason = "it is empty"
	case len(p) > maxPath:
		return anser.Errorf(anser.InvalidArgument, "the path of %d bytes is over the limit of %d", len(p), maxPath)
	case strings.HasPrefix(p, "/"):
		reason = "it is absolute: give one below the served folder"
	case strings.Contains(p, `\`):
		reason = `it has a backslash: folders are separated by "/"`
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		reason = "it has a control character"
	case strings.Contains(p, ":"):
		reason = `it has a colon, which Windows reads as a drive or a stream`
	default:
		for name := range strings.SplitSeq(p, "/") {
			if reason = checkName(name); reason != "" {
				break
			}
		}
	}
	if reason != "" {
		return anser.Errorf(anser.InvalidArgument, "the path %q cannot be used: %s", p, reason)
	}
	return nil
}

// checkText is the client's part of checkPath: an invalid string would arrive as a different path.
func checkText(p string) error {
	if !utf8.ValidString(p) {
		return anser.Errorf(anser.InvalidArgument, "the path %q cannot be used: it is not UTF-8", p)
	}
	return nil
}

// checkName returns what is wrong with one element of a path, or "".
func checkName(name string) string {
	switch {
	case name == "":
		return "it has an empty name between slashes"
	case name == "." || name == "..":
		return `it has "` + name + `": use the path from the served folder`
	case strings.HasPrefix(name, partPrefix):
		return "names that begin with " + partPrefix + " are reserved for unfinished transfers"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "Windows drops the full stop or space at the end of a name"
	case isDevice(name):
		return name + " is a device on Windows"
	}
	return ""
}

var devices = []string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}

// isDevice reports whether Windows treats the name as a device, whatever its extension.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	if slices.Contains(devices, stem) {
		return true
	}
	port, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		port, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}

// checkFolder is checkPath for a folder, which may also be the root: "" or ".".
func checkFolder(p string) (string, error) {
	if p == "" || p == "." {
		return ".", nil
	}
	p = strings.TrimSuffix(p, "/")
	return p, checkPath(p)
}

// sibling returns the path of a file in the same folder.
func sibling(p, name string) string { return path.Join(path.Dir(p), name) }
