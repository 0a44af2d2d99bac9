package anser

import (
	"fmt"
	"strconv"
)

// Options returns the options of the client in force. Nothing in the result is secret.
func (c *Client) Options() []OptionStatus {
	if !c.exists() {
		return nil
	}
	return c.o.statuses(c.o.values(), new(defaultDialOptions()).values())
}

func (o *dialOptions) values() []optionValue {
	conns := "of the transport"
	if o.conns != 0 {
		conns = strconv.Itoa(o.conns)
	}
	breaker, ejection := "off", "off"
	if b := o.breaker; !b.Off {
		breaker = fmt.Sprintf("%g of %d calls in %v, open %v", b.Ratio, b.Calls, b.Window, b.Open)
	}
	if e := o.ejection; !e.Off {
		ejection = fmt.Sprintf("%d failures, %d timeouts, %g deviations, slow %g", e.Failures, e.Timeouts, e.Deviations, e.Slow)
	}
	kept := "none"
	if o.call.codec != nil {
		kept = o.call.codec.Name()
	}
	return append(o.sideOptions.values(), []optionValue{
		{"Balancer", o.balancer.Name()},
		{"Conns", conns},
		{"ConnectTimeout", o.connectTimeout.String()},
		{"SlowStart", noneOr(o.slowStart)},
		{"Breaker", breaker},
		{"OutlierDetection", ejection},
		{"Subset", fmt.Sprintf("%d, %d", o.subset.from, o.subset.size)},
		{"Timeout", noneOr(o.call.timeout)},
		{"WithFailMode", o.call.mode.String()},
		{"Attempts", strconv.Itoa(o.call.attempts)},
		{"Forks", strconv.Itoa(o.call.forks)},
		{"Idempotent", onOff(o.call.idempotent)},
		{"RetryBudget", fmt.Sprintf("%g, %g per second", o.budgetRatio, o.budgetRate)},
		{"Codec", kept},
		{"Router", onOff(o.newRouter != nil)},
		{"Handlers", onOff(o.handlers != nil)},
		{"Snapshot", onOff(!o.noSnapshot)},
		{"Credentials", onOff(o.credentials != nil)},
		{"InsecureCredentials", onOff(o.inTheClear)},
	}...)
}

// DialOptionsOf is like [ServerOptionsOf], for options of [Dial] and [Client.Options].
func DialOptionsOf(origin string, opts ...DialOption) DialOption {
	return dialOption(func(o *dialOptions) {
		before := o.values()
		for _, opt := range opts {
			if err := o.apply(opt); err != nil {
				o.mistakes = append(o.mistakes, fmt.Errorf("anser.DialOptionsOf(%q): %w", origin, err))
			}
		}
		o.note(origin, before, o.values())
	})
}
