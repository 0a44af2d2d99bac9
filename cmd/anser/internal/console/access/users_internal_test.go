package access

import (
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// The password of an unknown user is compared with a hash of the same cost, which takes the time of
// a login.
func TestDecoy(t *testing.T) {
	for _, cost := range []int{bcrypt.MinCost, bcrypt.MinCost + 2} {
		hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), cost)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decoy(nil, []account{{"ada", Look, string(hash)}})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := bcrypt.Cost(got); err != nil || n != cost {
			t.Errorf("the cost is %d, %v, want %d", n, err, cost)
		}
		if again, err := decoy(got, []account{{"ada", Look, string(hash)}}); err != nil || &again[0] != &got[0] {
			t.Error("the same cost got another hash")
		}
	}
}
