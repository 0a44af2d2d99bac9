package anser

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser/codec"
)

// OptionStatus is an option in force.
type OptionStatus struct {
	Name    string // of the function, such as "MaxConns"
	Value   string
	Default string
	// Set says that an option has set the value. An option that sets the default does not count.
	Set bool
}

// optionValue is an option with its value.
type optionValue struct{ name, value string }

func optionStatuses(now, defaults []optionValue) []OptionStatus {
	list := make([]OptionStatus, len(now))
	for i, v := range now {
		d := defaults[i].value
		list[i] = OptionStatus{Name: v.name, Value: v.value, Default: d, Set: v.value != d}
	}
	return list
}

func (o *sideOptions) values() []optionValue {
	tls := "off"
	if o.tls != nil {
		tls = onOff(true)
	}
	return []optionValue{
		{"TLS", tls},
		{"MaxMessage", strconv.Itoa(o.maxMessage)},
		{"MaxExpansion", strconv.Itoa(o.maxExpansion)},
		{"HandshakeTimeout", o.handshakeTimeout.String()},
		{"Keepalive", fmt.Sprintf("%v, %v", o.keepaliveIdle, o.keepaliveAnswer)},
		{"IdleTimeout", noneOr(o.idleTimeout)},
		{"ReadTimeout", noneOr(o.readTimeout)},
		{"WriteStall", o.writeStall.String()},
		{"StreamWindows", windows(o)},
		{"Checksums", onOff(o.checksums)},
		{"Codecs", codecNamesOf(o.codecs)},
		{"Intercept", count(len(o.interceptors), "interceptor")},
		{"Observe", count(len(o.observers.all()), "observer")},
	}
}

func windows(o *sideOptions) string {
	if o.windowsGrow {
		return fmt.Sprintf("%d, %d, growing", o.streamWindow, o.connWindow)
	}
	return fmt.Sprintf("%d, %d", o.streamWindow, o.connWindow)
}

func codecNamesOf(list []codec.Codec) string {
	var names []string
	for _, c := range list {
		names = append(names, c.Name())
	}
	return listOr(names, "built in")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func noneOr(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}
