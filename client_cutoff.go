package anser

import (
	"slices"

	"github.com/anser-rpc/anser/internal/mono"
)

// cutOff ends the calls of a server to a client whose identity has ended, and takes the connection
// out of use while there is another one.
func (c *callerHalf) cutOff() {
	c.cutAll()
	c.host.setAside(c)
}

// cutAll ends all calls of a server to a client whose identity has ended.
func (c *callerHalf) cutAll() {
	c.mu.Lock()
	var over []*call
	c.open.Each(func(k *call) { over = append(over, k) })
	for _, k := range over {
		c.open.Take(k.id)
		k.failed = clientLapsed(OutcomeUnknown)
		c.cancelLocked(k, false, mono.Now())
	}
	c.busy.Store(int32(c.open.Len()))
	c.mu.Unlock()
	for _, k := range over {
		k.over()
	}
}

// setAside takes a connection to a client whose identity has ended out of use while another one
// takes calls. Without another one, calls fail at once.
func (h *host) setAside(c *callerHalf) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if list := *h.ready.Load(); len(list) > 1 && slices.Contains(list, c) {
		list = slices.DeleteFunc(slices.Clone(list), func(o *callerHalf) bool { return o == c })
		h.ready.Store(&list)
		c.aside = true
	}
}

// putBack takes a connection that was set aside into use again, and wakes the calls that wait for
// one because the others were lost in the meantime. A connection that was taken out of use for
// another reason stays out.
func (h *host) putBack(c *callerHalf) {
	h.mu.Lock()
	tell := func() {}
	if c.aside {
		c.aside = false
		tell = h.enlistLocked(c)
	}
	h.mu.Unlock()
	tell()
}

// enlistLocked takes a connection from the client of a session into use, and returns a function
// that notifies the clusters, to be called without the lock.
func (h *host) enlistLocked(c *callerHalf) (tell func()) {
	list := append(slices.Clone(*h.ready.Load()), c)
	h.ready.Store(&list)
	h.failures = 0
	return h.changedLocked()
}
