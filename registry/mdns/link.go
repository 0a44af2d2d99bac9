package mdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"golang.org/x/net/ipv4"
)

// port and group are those of mDNS over IPv4.
const port = 5353

var group = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: port}

// link is the multicast group on all interfaces.
type link struct {
	only []string // names of interfaces; empty means all
	conn *ipv4.PacketConn

	mu     sync.Mutex // guards the fields below, and the interface set for sending
	joined map[int]bool
	use    []net.Interface
}

func newLink(only []string) (*link, error) {
	config := net.ListenConfig{Control: share}
	c, err := config.ListenPacket(context.Background(), "udp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		return nil, err
	}
	l := &link{only: only, conn: ipv4.NewPacketConn(c), joined: make(map[int]bool)}
	c.(*net.UDPConn).SetReadBuffer(4 << 20) // the system may allow less
	// Other processes on this host must receive its messages, too. RFC 6762 requires a TTL of 255.
	err = errors.Join(l.conn.SetMulticastLoopback(true), l.conn.SetMulticastTTL(255))
	if err != nil {
		c.Close()
		return nil, err
	}
	l.conn.SetControlMessage(ipv4.FlagDst, true) // if the system supports it
	l.scan()
	return l, nil
}

// scan looks for interfaces and joins the group on new ones.
func (l *link) scan() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use = nil
	var loopback []net.Interface
	for _, i := range all {
		switch {
		case i.Flags&net.FlagUp == 0:
			delete(l.joined, i.Index) // it may be another interface when it comes back
		case len(l.only) > 0 && !slices.Contains(l.only, i.Name):
		case len(l.only) > 0 || i.Flags&net.FlagMulticast != 0 && i.Flags&net.FlagLoopback == 0:
			l.use = append(l.use, i)
		case i.Flags&net.FlagLoopback != 0:
			loopback = append(loopback, i)
		}
	}
	if len(l.use) == 0 {
		l.use = loopback
	}
	var errs []error
	l.use = slices.DeleteFunc(l.use, func(i net.Interface) bool {
		if l.joined[i.Index] {
			return false
		}
		l.conn.LeaveGroup(&i, group) // fails unless a membership outlived the interface going down
		if err := l.conn.JoinGroup(&i, group); err != nil {
			errs = append(errs, fmt.Errorf("interface %s: %w", i.Name, err))
			return true
		}
		l.joined[i.Index] = true
		return false
	})
	return errors.Join(errs...)
}

// send sends a message to the group on every interface. It fails if that fails on all of them.
func (l *link) send(message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.use) == 0 {
		return errors.New("no network interface with multicast is up")
	}
	var errs []error
	for _, i := range l.use {
		err := l.conn.SetMulticastInterface(&i)
		if err == nil {
			_, err = l.conn.WriteTo(message, nil, group)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("interface %s: %w", i.Name, err))
		}
	}
	if len(errs) == len(l.use) {
		return errors.Join(errs...)
	}
	return nil
}

// receive returns the next message sent to the group.
func (l *link) receive(b []byte) (n int, err error) {
	for {
		n, head, _, err := l.conn.ReadFrom(b)
		if err != nil {
			return 0, err
		}
		// A unicast message may come from outside the local network.
		if head == nil || head.Dst == nil || head.Dst.IsMulticast() {
			return n, nil
		}
	}
}

func (l *link) close() { l.conn.Close() }
