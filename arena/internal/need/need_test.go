package need_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/need"
)

func TestMissing(t *testing.T) {
	var c need.Checker
	if got := c.Missing([]string{"go", "no-such-program", "pkg:no-such-library", "no-such-program"}); !slices.Equal(got, []string{"no-such-program", "pkg:no-such-library"}) {
		t.Errorf("missing %q", got)
	}
	if v := c.Version("go"); !strings.HasPrefix(v, "1.") || v != c.Version("go") {
		t.Errorf("go has version %q", v)
	}
	if v := c.Version("no-such-program"); v != "" {
		t.Errorf("a program that is not there has version %q", v)
	}
}

func TestAdvice(t *testing.T) {
	for _, c := range []struct{ missing, packages, debian, others string }{
		{"", "libthrift-dev", "", ""},
		{"mvn javac", "", "maven openjdk-17-jdk-headless", ""},
		{"thrift pkg:thrift", "libthrift-dev thrift-compiler", "libthrift-dev thrift-compiler", ""},
		{"go", "", "", "install Go 1.26 or newer from https://go.dev/dl"},
		{"dub", "", "", "install dub so that it is found in PATH"},
		{"dub", "dub-package", "dub-package", ""},
		{"pkg:x", "", "", "install the library that pkg-config calls x"},
	} {
		debian, others := need.Advice(strings.Fields(c.missing), strings.Fields(c.packages))
		if strings.Join(debian, " ") != c.debian || strings.Join(others, "; ") != c.others {
			t.Errorf("for %q with %q: %q and %q, want %q and %q", c.missing, c.packages, debian, others, c.debian, c.others)
		}
	}
}

func TestInstall(t *testing.T) {
	if err := need.Install(t.Context(), nil, io.Discard); err != nil {
		t.Errorf("nothing to install: %v", err)
	}
	if os.Geteuid() == 0 {
		t.Setenv("PATH", t.TempDir()) // without apt-get root cannot either, and nothing is installed by this test
	}
	err := need.Install(t.Context(), []string{"hello"}, io.Discard)
	if !errors.Is(err, need.ErrCannotInstall) || !strings.Contains(err.Error(), "apt-get install -y --no-install-recommends hello") {
		t.Errorf("%v", err)
	}
}
