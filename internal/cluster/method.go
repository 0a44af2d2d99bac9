package cluster

import "sync/atomic"

// MaxMethods is the number of methods of a client that are judged each by itself. All further ones
// are counted together.
const MaxMethods = 1 << 14

// Method is the state of one method of a client. Name and Index are set before its first use, and
// not changed.
type Method[H Host, R comparable] struct {
	Name  string
	Index int // below MaxMethods; MaxMethods: the method is counted with others

	view  atomic.Pointer[View[H, R]] // the view without instances whose breakers are open; nil if there are none
	trial probe[H, R]                // of a half-open breaker
}

// View returns the view without the instances whose breakers for the method are open, or nil if
// there are none.
func (m *Method[H, R]) View() *View[H, R] { return m.view.Load() }

// counted returns the method under which m is counted. Methods that are not kept share one.
func (cl *Cluster[H, R]) counted(m *Method[H, R]) *Method[H, R] {
	if m.Index < MaxMethods {
		return m
	}
	return &cl.others
}
