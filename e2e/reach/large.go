package main

import (
	"fmt"
	"io"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

// swapping compares large messages with as many bytes over a bare connection.
type swapping struct {
	comparison
	Size int `json:"bytes"`
}

// besideSize is the size of the messages next to which small calls are made.
const besideSize = 16 << 20

// measureLarge swaps large messages of bytes, one at a time, and makes small calls next to them.
func measureLarge(o options, r *report) error {
	s, addr, err := serverOf("process-large")
	if err != nil {
		return err
	}
	defer s.stop()
	bare, bareAddr, err := serverOf("process-barelarge")
	if err != nil {
		return err
	}
	defer bare.stop()
	for _, at := range []struct{ size, calls int }{{1 << 20, 400}, {16 << 20, 40}, {256 << 20, 4}} {
		c := &swapping{comparison: comparison{Callers: 1, measure: callsPerS}, Size: at.size}
		r.Large = append(r.Large, c)
		for range o.rounds {
			l := say.Options{Addr: bareAddr, Size: at.size, Calls: o.calls(at.calls, 1)}
			base, err := loadKind(bare, "swapbare", l)
			if err != nil {
				return err
			}
			l.Addr = addr
			own, err := loadKind(s, "swap", l)
			if err != nil {
				return err
			}
			c.add(own, base)
		}
		c.end()
	}
	r.LargeBeside = &comparison{Callers: 1, measure: p99}
	r.LargeApart = &comparison{Callers: 1, measure: p99}
	for range o.rounds {
		l := say.Options{Addr: addr, Callers: 1, Calls: o.calls(500, 1)}
		base, err := loadKind(s, "beside", l)
		if err != nil {
			return err
		}
		l.Size = besideSize
		own, err := loadKind(s, "beside", l)
		if err != nil {
			return err
		}
		l.Own = true
		apart, err := loadKind(s, "beside", l)
		if err != nil {
			return err
		}
		r.LargeBeside.add(own, base)
		r.LargeApart.add(apart, base)
	}
	r.LargeBeside.end()
	r.LargeApart.end()
	return nil
}

// printLarge prints rates in GB/s of both directions together.
func (r *report) printLarge(t io.Writer) {
	fmt.Fprint(t, "\nlarge messages of bytes, swapped one at a time, against a bare connection\n\tGB/s\tclient CPU ms\tserver CPU ms\tratio of GB/s (least – most)\n")
	line := func(name string, size int, f figures, ratio string) {
		fmt.Fprintf(t, "%s, %d MiB\t%.2f\t%.2f\t%.2f\t%s\n", name, size>>20, 2*float64(size)*f.CallsPerS/1e9, f.ClientCPU/1e3, f.ServerCPU/1e3, ratio)
	}
	for _, c := range r.Large {
		line("anser", c.Size, c.Own, c.Ratio.String())
		line("bare connection", c.Size, c.Base, "")
	}
	heading(t, fmt.Sprintf("calls of 581 bytes next to messages of %d MiB, on one connection", besideSize>>20), "p99")
	lines := []struct {
		name  string
		f     figures
		ratio string
	}{
		{"with", r.LargeBeside.Own, r.LargeBeside.Ratio.String()},
		{"with, on another connection", r.LargeApart.Own, r.LargeApart.Ratio.String()},
		{"without", r.LargeBeside.Base, ""},
	}
	for _, l := range lines {
		printLine(t, l.name, l.f, l.ratio)
	}
	for _, l := range lines {
		fmt.Fprintf(t, "longest, %s\t%.1f ms\n", l.name, l.f.Max/1e3)
	}
}
