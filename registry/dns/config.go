package dns

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// config is the content of /etc/resolv.conf.
type config struct {
	servers []string
	search  []string
	ndots   int // names with at least this many dots are tried as they are before the search list
}

// settings returns the servers to ask and the search list for short names.
func (c *client) settings() (config, error) {
	text, err := os.ReadFile(c.config)
	if err != nil && len(c.servers) == 0 {
		return config{}, fmt.Errorf("no DNS server is known: name one, as in dns://10.0.0.53/host:port: %w", err)
	}
	conf := parseConfig(string(text))
	if len(c.servers) > 0 {
		conf.servers = c.servers
	}
	return conf, nil
}

// parseConfig parses the directives of resolv.conf(5) that concern names and servers.
func parseConfig(text string) config {
	c := config{ndots: 1}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.ContainsAny(fields[0][:1], "#;") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(c.servers) < 3 {
				c.servers = append(c.servers, net.JoinHostPort(fields[1], "53"))
			}
		case "domain":
			c.search = fields[1:2]
		case "search":
			c.search = fields[1:]
		case "options":
			for _, o := range fields[1:] {
				if v, ok := strings.CutPrefix(o, "ndots:"); ok {
					if n, err := strconv.Atoi(v); err == nil {
						c.ndots = min(max(n, 0), 15)
					}
				}
			}
		}
	}
	if len(c.servers) == 0 {
		c.servers = []string{"127.0.0.1:53"}
	}
	return c
}

// candidates returns the full names to try for a name, in order.
func (c config) candidates(name string) []string {
	if strings.HasSuffix(name, ".") {
		return []string{name}
	}
	var searched []string
	for _, s := range c.search {
		if full := name + "." + strings.Trim(s, ".") + "."; checkName(full) == nil {
			searched = append(searched, full)
		}
	}
	if strings.Count(name, ".") >= c.ndots {
		return append([]string{name + "."}, searched...)
	}
	return append(searched, name+".")
}
