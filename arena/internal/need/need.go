// Package need tells whether what a peer needs is on this machine, and how to get it.
package need

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// packagePrefix begins a need that pkg-config knows.
const packagePrefix = "pkg:"

// Debian has the packages of Debian for what peers need. Packages of libraries are named by the
// peers themselves.
var debian = map[string]string{
	"java":       "openjdk-17-jre-headless",
	"javac":      "openjdk-17-jdk-headless",
	"mvn":        "maven",
	"g++":        "g++",
	"gcc":        "gcc",
	"cmake":      "cmake",
	"make":       "make",
	"pkg-config": "pkg-config",
	"protoc":     "protobuf-compiler",
	"thrift":     "thrift-compiler",
	"strace":     "strace",
	"ip":         "iproute2",
	"git":        "git",
}

// Elsewhere says how to get what Debian does not have in the version that is needed.
var elsewhere = map[string]string{
	"go": "install Go 1.26 or newer from https://go.dev/dl",
}

// Checker looks for needs, and remembers what it found. The zero value is ready; its methods are
// safe for concurrent use.
type Checker struct {
	mu       sync.Mutex // guards versions
	versions map[string]string
}

// Met reports whether a need is there.
func (c *Checker) Met(need string) bool {
	if name, ok := strings.CutPrefix(need, packagePrefix); ok {
		return exec.Command("pkg-config", "--exists", name).Run() == nil
	}
	_, err := exec.LookPath(need)
	return err == nil
}

// Missing returns those of the needs that are not there, in their order.
func (c *Checker) Missing(needs []string) []string {
	var missing []string
	for _, need := range needs {
		if !c.Met(need) && !slices.Contains(missing, need) {
			missing = append(missing, need)
		}
	}
	return missing
}

// versionOf has the arguments that make a program tell its version, where they are not --version.
var versionOf = map[string][]string{
	"go":    {"version"},
	"java":  {"-version"},
	"javac": {"-version"},
	"ip":    {"-V"},
}

// A version is a number with points in it, or at least a number.
var (
	number = regexp.MustCompile(`\d+(\.\d+)+[-+_.a-zA-Z0-9]*`)
	whole  = regexp.MustCompile(`\d+`)
	colour = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// Version returns the version of a need that is there, or "".
func (c *Checker) Version(need string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.versions[need]; ok {
		return v
	}
	v := version(need)
	if c.versions == nil {
		c.versions = make(map[string]string)
	}
	c.versions[need] = v
	return v
}

func version(need string) string {
	// A program that waits for something instead of telling its version must not hold up a run.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	command, args := need, versionOf[need]
	if name, ok := strings.CutPrefix(need, packagePrefix); ok {
		command, args = "pkg-config", []string{"--modversion", name}
	} else if args == nil {
		args = []string{"--version"}
	}
	text, err := exec.CommandContext(ctx, command, args...).CombinedOutput() // java tells it on the standard error
	if err != nil {
		return ""
	}
	return versionIn(string(text))
}

// versionIn finds the version in what a program says. Maven says it in colours.
func versionIn(text string) string {
	text = colour.ReplaceAllString(text, "")
	if v := number.FindString(text); v != "" {
		return v
	}
	return whole.FindString(text)
}

// Advice returns what to install for the missing needs. packages are additional packages named by
// the peers.
func Advice(missing, packages []string) (debianPackages, others []string) {
	for _, need := range missing {
		switch name, library := strings.CutPrefix(need, packagePrefix); {
		case library:
			if len(packages) == 0 {
				others = append(others, fmt.Sprintf("install the library that pkg-config calls %s", name))
			}
		case debian[need] != "":
			debianPackages = append(debianPackages, debian[need])
		case elsewhere[need] != "":
			others = append(others, elsewhere[need])
		case len(packages) == 0:
			others = append(others, fmt.Sprintf("install %s so that it is found in PATH", need))
		}
	}
	if len(missing) > 0 {
		debianPackages = append(debianPackages, packages...)
	}
	slices.Sort(debianPackages)
	return slices.Compact(debianPackages), others
}
