package accesstest_test

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

func TestUsers(t *testing.T) {
	u, err := access.OpenUsers(accesstest.Users(t))
	if err != nil {
		t.Fatal(err)
	}
	for role := access.Look; role <= access.Administer; role++ {
		if !slices.ContainsFunc(u.List(), func(u access.User) bool { return u.Name == role.String() && u.Role == role }) {
			t.Errorf("no user has the role %s: %v", role, u.List())
		}
	}
}
