package anser

import (
	"cmp"
	"fmt"
	"path"
	"runtime"
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
	// By says where the value is from, if it is Set: the origin of [ServerOptionsOf] or
	// [DialOptionsOf], or the place in the program that has made the server or client.
	By string
}

// optionValue is an option with its value.
type optionValue struct{ name, value string }

func (o *sideOptions) statuses(now, defaults []optionValue) []OptionStatus {
	list, program := make([]OptionStatus, len(now)), "an option of the program"
	if place := placeOf(o.made); place != "" {
		program += ", " + place
	}
	for i, v := range now {
		list[i] = OptionStatus{Name: v.name, Value: v.value, Default: defaults[i].value, Set: v.value != defaults[i].value}
		if list[i].Set {
			list[i].By = cmp.Or(o.origins[v.name], program)
		}
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

// note remembers the origin of the options that have changed.
func (o *sideOptions) note(origin string, before, now []optionValue) {
	if o.origins == nil {
		o.origins = make(map[string]string)
	}
	for i, v := range now {
		if v != before[i] {
			o.origins[v.name] = origin
		}
	}
}

// callerOf returns the program counter of the caller of the function that calls it.
func callerOf() uintptr {
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return pc[0]
}

// placeOf formats a program counter as the last folder, the file and the line.
func placeOf(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return ""
	}
	folder, file := path.Split(frame.File)
	return strings.TrimPrefix(path.Join(path.Base(folder), file), "/") + fmt.Sprintf(":%d", frame.Line)
}
