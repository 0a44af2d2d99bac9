package doctor

import (
	"context"
	"time"

	"github.com/anser-rpc/anser/route"
)

// rules examines the traffic rules of the service.
func (s *service) rules(ctx context.Context) {
	store, err := s.registry.Store()
	if err != nil {
		return // the registry keeps none
	}
	ctx, cancel := s.config.within(ctx)
	defer cancel()
	d, err := route.Load(ctx, store, s.name)
	switch {
	case err != nil:
		s.add("rules", Fail, `correct them with "anser rules set", or go back with "anser rules rollback": running clients keep to older ones, new ones follow none`,
			"the traffic rules cannot be used: %v", err)
		return
	case d.Version == 0:
		return
	}
	if ahead := time.Until(d.Time); ahead > farSkewed {
		s.add("clock", Warn, "set the clocks by NTP", "version %d of the rules was written %s in the future: the clock of its writer is wrong, or this machine's", d.Version, span(ahead))
	}
	methods, complete := s.methodNames()
	if !complete {
		methods = nil
	}
	unused, interfering := d.Rules.Unused(s.instances, methods), d.Rules.Interfering()
	for _, u := range unused {
		s.add("rules", Warn, `correct the rule, or delete it, with "anser rules set"`, "the rule %s has no effect: %s", u.Rule, u.Why)
	}
	for _, name := range interfering {
		s.add("rules", Warn, `delete it with "anser rules set" when it is no longer wanted`, "the rule %s answers calls in place of the servers, or makes them slow or fail", name)
	}
	if len(unused)+len(interfering) == 0 {
		s.pass("rules", "version %d of the traffic rules is valid, and each rule has an effect", d.Version)
	}
}
