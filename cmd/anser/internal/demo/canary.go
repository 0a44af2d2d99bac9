package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/route"
)

const (
	usualVersion  = "1.0"
	canaryVersion = "2.0"
	canaryPercent = 10
	canaryCalls   = 100 // needed for a meaningful share
	canaryRule    = "demo: canary"
)

// canaryID is the name of the additional instance of a service.
func canaryID(service string) string { return instanceID(service, instancesOfService+1) }

// stepCanary starts an instance of another version, to which rules in the registry send some of
// the calls of its service, and removes both again.
func (d *demo) stepCanary(ctx context.Context, in *instance) (showed string, err error) {
	service := in.service
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), startBound)
		defer cancel()
		err = errors.Join(err, d.split(bounded, service, -1))
	}()
	// The rules come first: a new instance gets as many calls as each of the others.
	if err := d.split(ctx, service, canaryPercent); err != nil {
		// The service may have rules of the user, which leave no share for the demo's.
		return "not performed: " + err.Error(), nil
	}
	canary := d.fleet.add(service)
	if err := d.fleet.replace(ctx, canary, nil); err != nil {
		return "", err
	}
	all, one := d.figures.share(canary)
	d.waitHold(ctx)
	nowAll, nowOne := d.waitShare(ctx, canary, all+canaryCalls)
	if err := d.split(ctx, service, 0); err != nil {
		return "", err
	}
	began := time.Now()
	if err := d.fleet.drain(canary); err != nil {
		return "", err
	}
	d.fleet.remove(canary)
	return fmt.Sprintf("version %s got %s of the %s calls to %s, and drained within %s when the rules no longer sent it any",
		canaryVersion, table.Count(nowOne-one), table.Count(nowAll-all), service, table.Duration(time.Since(began))), nil
}

// waitShare waits for that number of calls to the service of the instance, but not for long, and
// returns the result of share.
func (d *demo) waitShare(ctx context.Context, in *instance, calls int64) (all, one int64) {
	ctx, cancel := context.WithTimeout(ctx, maxHold)
	defer cancel()
	poll(ctx, func() bool {
		all, one = d.figures.share(in)
		return all >= calls
	})
	return all, one
}

// poll waits until so returns true, and reports whether it did before ctx was done.
func poll(ctx context.Context, so func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// split makes the rules of the service send a percentage of its calls to the canary's version, or
// removes that rule if percent is negative, and waits until the traffic follows it. Other rules
// stay unchanged.
func (d *demo) split(ctx context.Context, service string, percent float64) error {
	comment := fmt.Sprintf("%g %% of the calls to version %s", percent, canaryVersion)
	if percent < 0 {
		comment = "the split is removed"
	}
	for {
		doc, err := route.Load(ctx, d.rules, service)
		if err != nil {
			return err
		}
		rules := doc.Rules
		ours := func(r route.SplitRule) bool { return r.Name == canaryRule }
		if percent < 0 && !slices.ContainsFunc(rules.Split, ours) {
			return nil
		}
		rules.Split = slices.DeleteFunc(slices.Clone(rules.Split), ours)
		if percent >= 0 {
			rules.Split = append(rules.Split, route.SplitRule{
				Name: canaryRule, Percent: percent, To: route.Select{Version: route.Patterns{canaryVersion}},
			})
		}
		saved, err := route.Save(ctx, d.rules, service, doc.Version, rules, "anser demo", comment)
		if _, ok := errors.AsType[*route.ConflictError](err); ok {
			continue // another change came first: it is kept
		}
		if err != nil {
			return err
		}
		d.tell(Event{"rules", "", fmt.Sprintf("%s, version %d: %s", service, saved.Version, comment)})
		return d.waitRules(ctx, service, saved.Version)
	}
}

// waitRules waits until the callers follow that version of the rules.
func (d *demo) waitRules(ctx context.Context, service string, version uint64) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	client := d.traffic.clients[service]
	followed := poll(ctx, func() bool {
		r := client.Status().Rules
		return r != nil && r.Version >= version
	})
	if !followed {
		return fmt.Errorf("the callers of %s do not follow version %d of its rules: %w", service, version, ctx.Err())
	}
	return nil
}
