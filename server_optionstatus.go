package anser

import (
	"fmt"
	"strconv"
)

// Options returns the options of the server in force, without those of single methods: see
// [Server.MethodStatus]. Options that are on or off, such as [TLS], have the values "on" and "off".
// Nothing in the result is secret.
func (s *Server) Options() []OptionStatus {
	if s.usable() != nil {
		return nil
	}
	return s.o.statuses(s.o.values(), new(defaultServerOptions()).values())
}

func (o *serverOptions) values() []optionValue {
	adaptive := "off"
	if o.adaptive != nil {
		adaptive = fmt.Sprintf("%d, %d", o.adaptive.least, o.adaptive.most)
	}
	memory := "a part of the process's memory"
	if o.maxMemory != 0 {
		memory = strconv.Itoa(o.maxMemory)
	}
	var names []string
	for _, p := range o.protocols {
		names = append(names, p.Name())
	}
	var targets []string
	for _, a := range o.announcements {
		targets = append(targets, a.instance.Service)
	}
	var compressors []string
	for _, c := range o.compressors {
		compressors = append(compressors, c.Name())
	}
	return append(o.sideOptions.values(), []optionValue{
		{"MaxConns", strconv.Itoa(o.maxConns)},
		{"MaxHandshakes", strconv.Itoa(o.maxHandshakes)},
		{"MaxInFlight", strconv.Itoa(o.maxInFlight)},
		{"MaxCalls", strconv.Itoa(o.maxCalls)},
		{"MaxStreams", strconv.Itoa(o.maxStreams)},
		{"MaxMemory", memory},
		{"MaxQueueTime", noneOr(o.queueTime)},
		{"AdaptiveLimit", adaptive},
		{"MinPing", o.minPing.String()},
		{"DrainGrace", o.grace.String()},
		{"SessionGrace", o.sessionGrace.String()},
		{"Authenticate", count(len(o.authenticators), "authenticator")},
		{"Authorize", onOff(o.authorizer != nil)},
		{"AllowFrom", count(len(o.addresses.allowed), "prefix")},
		{"DenyFrom", count(len(o.addresses.denied), "prefix")},
		{"InsecurePublic", onOff(o.insecure)},
		{"ReusePort", onOff(o.reusePort)},
		{"NoSignals", onOff(!o.signals)},
		{"NoDescribe", onOff(!o.describe)},
		{"Deduplicate", onOff(o.once)},
		{"ReplyCache", fmt.Sprintf("%d, %v", o.memory.Bytes, o.memory.Age)},
		{"Protocols", listOr(names, "anser alone")},
		{"Compressors", listOr(compressors, "none")},
		{"Announce", listOr(targets, "none")},
		{"Forward", onOff(o.forwarder != nil)},
	}...)
}

// ServerOptionsOf returns options as one option that says where they are from, such as "flag
// --limit" or "edge.yaml": [Server.Options] names that origin for each option that they change. So
// an operator finds out where a value must be changed.
func ServerOptionsOf(origin string, opts ...ServerOption) ServerOption {
	return serverOption(func(o *serverOptions) {
		before := o.values()
		for _, opt := range opts {
			if o.wants(opt != nil, "anser.ServerOptionsOf(%q): an option is nil", origin) {
				opt.applyServer(o)
			}
		}
		o.note(origin, before, o.values())
	})
}
