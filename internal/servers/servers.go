// Package servers finds and runs what scripts/servers got for the tests: programs that are too large to be built by
// every run, in a folder of the user's cache, and those that the system's packages have. Only tests import it.
package servers

import (
	"os"
	"path/filepath"
	"testing"
)

// Find returns the path of a file below the cache, such as "consul-1.15.0/consul". The test fails where it is
// not there.
func Find(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "anser", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run scripts/servers, which gets the servers that tests need, or scripts/servers kubernetes for that one", err)
	}
	return path
}
