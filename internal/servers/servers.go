// Package servers finds and runs the servers installed for tests by scripts/servers: programs that
// are too large to be built in every run, in a folder of the user's cache, and programs of the
// system's packages. Only tests import it.
package servers

import (
	"os"
	"path/filepath"
	"testing"
)

// Find returns the path of a file below the cache, such as "consul-1.15.0/consul". The test fails
// if it does not exist.
func Find(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "anser", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run scripts/servers, which installs the servers for tests, or scripts/servers kubernetes for that one", err)
	}
	return path
}
