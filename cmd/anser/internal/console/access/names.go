package access

import (
	"fmt"
	"strings"
	"unicode"
)

// maxName is the maximum length of the name of a user, in bytes.
const maxName = 200

// Authors that are no users. Users may not have their names, by which they could be mistaken.
const (
	Console     = "console"      // of what the console does on its own
	ThisMachine = "this machine" // of requests without a login
)

// checkName returns an error for a name that no user may have.
func checkName(name string) error {
	for _, own := range []string{Console, ThisMachine} {
		if strings.EqualFold(name, own) {
			return fmt.Errorf("%q is what the console calls itself or users without a login: use another name", name)
		}
	}
	return checkForm(name)
}

func checkForm(name string) error {
	if name == "" || len(name) > maxName || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.40q is no name of a user: use 1 to %d printable characters", name, maxName)
	}
	return nil
}
