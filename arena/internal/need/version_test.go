package need

import "testing"

func TestVersionIn(t *testing.T) {
	for text, want := range map[string]string{
		"go version go1.26.8 linux/amd64":               "1.26.8",
		"g++ (Debian 12.2.0-14+deb12u1) 12.2.0":         "12.2.0-14+deb12u1",
		"\x1b[1mApache Maven 3.8.7\x1b[m\nMaven home":   "3.8.7",
		"openjdk version \"17.0.15\" 2025-04-15":        "17.0.15",
		"ip utility, iproute2-6.1.0, libbpf 1.1.0":      "6.1.0",
		"libprotoc 3.21.12":                             "3.21.12",
		"less 590 (GNU regular expressions)\nCopyright": "590",
		"something else":                                "",
	} {
		if got := versionIn(text); got != want {
			t.Errorf("%q has version %q, want %q", text, got, want)
		}
	}
}
