package doctor

import (
	"strings"
	"testing"
	"time"
)

func TestServerWithoutCertificate(t *testing.T) {
	c := &certificates{findings: new(findings), name: "h", now: time.Now()}
	if c.check() || len(c.list) != 1 || c.list[0].Status != Fail || !strings.Contains(c.list[0].Text, "no certificate") || c.list[0].Advice == "" {
		t.Fatalf("%+v", c.list)
	}
	Asserted(c.list[0])
}
