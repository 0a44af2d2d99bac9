package anser

import "github.com/anser-rpc/anser/codec"

// newInvocation makes the Invocation of a client's call, with options of its own through which the
// attempts reach it. by is what observers know of the call, or nil.
func newInvocation(c *Client, method string, in, out any, o *callOptions, by *answer) *Invocation {
	made := &struct {
		inv    Invocation
		o      callOptions
		chosen chosenTrace
	}{o: *o}
	made.o.inv = &made.inv
	if by != nil {
		made.chosen = by.chosen()
		made.o.traced = &made.chosen
	}
	made.inv = Invocation{Method: method, Request: in, Reply: out, options: &made.o, side: c}
	return &made.inv
}

// codecOf returns the codec for the messages of a call, or nil.
func (c *Client) codecOf(inv *Invocation) codec.Codec {
	if inv.options != nil && inv.options.codec != nil {
		return inv.options.codec
	}
	return c.codecFor(inv.Request, inv.Reply)
}
