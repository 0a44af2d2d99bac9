package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
)

type breakerKey struct{ service, instance, method, by string }

// addHealth adds what the clients of all processes say about the instances.
func (s *snapshot) addHealth() {
	for _, p := range s.round.Processes {
		if p.Error != "" || p.Double {
			continue
		}
		for i := range p.Clients {
			c := &p.Clients[i]
			v := s.services[c.Service]
			if c.Service == "" || v == nil {
				continue
			}
			if v.trouble == "" && c.RulesTrouble != "" {
				v.trouble = c.RulesTrouble
			}
			for j := range c.Instances {
				seen := &c.Instances[j]
				in := v.byID[seen.Key]
				if in == nil {
					continue
				}
				in.hear(seen.Status, seen.Why, p.Name)
				for _, m := range seen.Breakers {
					s.breakers[breakerKey{c.Service, in.ID, m, p.Name}] = true
				}
			}
		}
	}
}

// rank orders healths from what says least to the worst.
func rank(health string) int {
	switch health {
	case model.OK:
		return 1
	case model.Down:
		return 2
	case model.Ejected:
		return 3
	}
	return 0
}

// hear takes what one client says: the worst counts.
func (in *instanceView) hear(status, why, by string) {
	health := model.Unknown
	switch status {
	case "connected", "idle":
		if in.Health != model.Unknown {
			return // what most clients say about most instances
		}
		health = model.OK
	case "down":
		health = model.Down
	case "ejected":
		health = model.Ejected
	}
	if rank(health) <= rank(in.Health) {
		return
	}
	in.Health = health
	if health == model.OK {
		return
	}
	in.said.by, in.said.why = by, why
	text := fmt.Sprintf("%s: %s", by, cmp.Or(why, "cannot reach it"))
	if in.process != nil && in.process.Error != "" {
		text += "; " + in.process.Error
	}
	in.Why = model.Text(text)
}

// out reports whether a client cannot reach the instance, or has ejected it.
func (in *instanceView) out() bool { return in.Health == model.Ejected || in.Health == model.Down }

// digest returns a short fingerprint of fingerprints by method.
func digest(prints map[string]string) string {
	h := sha256.New()
	for _, method := range slices.Sorted(maps.Keys(prints)) {
		fmt.Fprintf(h, "%s=%s\n", method, prints[method])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
