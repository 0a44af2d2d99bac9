// Package accesstest makes users for tests of the console.
package accesstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
)

// Password is that of all users.
const Password = "correct horse"

// Users returns a file with a user of each role, named like it. Its hashes are quick to compare.
// The file is removed when the test ends.
func Users(t testing.TB) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for role := access.Look; role <= access.Administer; role++ {
		list = append(list, map[string]string{"name": role.String(), "role": role.String(), "hash": string(hash)})
	}
	data, err := json.Marshal(map[string]any{"users": list})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
