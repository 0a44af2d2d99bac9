package report

import "testing"

func TestShellLine(t *testing.T) {
	got := shellLine([]string{"go", "run", "./arena", "--peers", "a b", "it's", "", "$HOME", "1,100"})
	if want := `go run ./arena --peers 'a b' 'it'\''s' '' '$HOME' 1,100`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOnlyAddressesOfTheWebAreLinks(t *testing.T) {
	for s, want := range map[string]bool{
		"https://example.org/a?b=c#d": true, "http://example.org": true, "javascript:alert(1)": false, "see https://example.org": false,
		"https://": false, "": false, "data:text/html,x": false, "https://x/\">": false, "README of somebody": false,
	} {
		if got := address(s) != ""; got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
