// Package cputime measures the CPU time of processes.
package cputime

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"
)

// ErrUnknown means that the system does not provide the time, or that the process is not on this
// machine.
var ErrUnknown = errors.New("the processor time is unknown")

// Of returns the total CPU time of the processes.
func Of(pids []int) (time.Duration, error) {
	if len(pids) == 0 {
		return 0, ErrUnknown
	}
	var sum time.Duration
	for _, pid := range pids {
		d, err := ofProcess(pid)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// Listeners returns the processes of this machine that listen on the addresses, each host:port or
// unix:///path; ErrUnknown if one of them is not found.
func Listeners(addresses []string) ([]int, error) {
	sockets := make(map[string]bool)
	for _, address := range addresses {
		inode, err := socketAt(address)
		if err != nil {
			return nil, err
		}
		sockets[inode] = true
	}
	return holders(sockets)
}

// localAddress returns the address in the form of the system's tables, if it belongs to this
// machine.
func localAddress(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	a, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, ErrUnknown
	}
	if a.Addr().IsLoopback() {
		return a, nil
	}
	mine, err := net.InterfaceAddrs()
	if err != nil {
		return netip.AddrPort{}, err
	}
	for _, m := range mine {
		if prefix, err := netip.ParsePrefix(m.String()); err == nil && prefix.Addr() == a.Addr().Unmap() {
			return a, nil
		}
	}
	return netip.AddrPort{}, ErrUnknown
}
