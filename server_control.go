package anser

import (
	"context"
	"time"

	"github.com/anser-rpc/anser/internal/cancelpace"
	"github.com/anser-rpc/anser/wire"
)

// callsToClient is the caller half of a server's connection.
type callsToClient interface {
	// cutOff ends its calls and refuses new ones: the identity of the client has ended.
	cutOff()
	// inUse reports whether calls are open.
	inUse() bool
	// awaits reports whether the client's reply to a call is due. There is an error if the call was
	// never made.
	awaits(h wire.Header) (bool, error)
	// answered handles the client's reply to a call.
	answered(h wire.Header, body []byte) error
}

// control handles every frame but REQUEST.
func (c *serverConn) control(s *reading, h wire.Header, body []byte) error {
	switch h.Type {
	case wire.TypeCancel:
		return c.cancel(s, h, body)
	case wire.TypeData, wire.TypeEnd, wire.TypeWindow:
		return c.streamFrame(s, h, body)
	case wire.TypeMethod:
		return c.nameMethod(s, body)
	case wire.TypePart:
		return c.part(s, h, body)
	case wire.TypeAuth:
		return c.renew(s, body)
	case wire.TypeReply, wire.TypeError:
		return c.answered(h, body)
	}
	answers, drain, err := c.conn.control(s.out, h, body, "client")
	s.out = answers
	if drain {
		return c.drained(s, h.Flags)
	}
	return err
}

func (c *calleeHalf) nameMethod(s *reading, body []byte) error {
	number, name, err := wire.ParseMethod(body)
	if err != nil {
		return err
	}
	if int(number) == len(s.methods)+1 && number > wire.MaxMethods {
		c.server.stats.hit(limitMethods)
		return wire.Errorf(wire.BadMethod, "METHOD %d is over the limit of %d methods for each connection", number, wire.MaxMethods)
	}
	if int(number) != len(s.methods)+1 {
		return wire.Errorf(wire.BadMethod, "METHOD %d after %d, want the next number up to %d", number, len(s.methods), wire.MaxMethods)
	}
	n := named{looked: c.server.table.version.Load()}
	if n.method, n.alias = c.server.table.find(name, false); n.method != nil {
		c.expect(s, n.method)
	} else if p := c.server.o.forwarder; p != nil && p.announced(&n, name) {
		c.expect(s, n.forwarded)
	} else if s.unknown+len(name) <= maxUnknown {
		s.unknown += len(name)
		n.name = name
	}
	s.methods = append(s.methods, n)
	return nil
}

// expect prepares the connection for calls of a method.
func (c *calleeHalf) expect(s *reading, m *method) {
	if s.sockDelay == nil && c.accepted != nil && m.limits != nil && m.limits.queueTime != 0 {
		s.sockDelay = newSockDelay(c.nc)
	}
}

func (c *calleeHalf) cancel(s *reading, h wire.Header, body []byte) error {
	if err := wire.ParseCancel(body); err != nil {
		return err
	}
	if h.ID > s.lastID {
		return wire.Errorf(wire.BadID, "CANCEL of the call %d, which was never made", h.ID)
	}
	if !s.cancels.Allow(s.arrived, c.server.settings.MaxCalls) {
		return wire.Errorf(wire.Flood, "more than %d cancels a second", cancelpace.Rate)
	}
	c.mu.Lock()
	ctx := c.running.Take(h.ID)
	if c.lent != nil {
		c.lent.leaveOut(h.ID) // the rest of the reply
	}
	c.mu.Unlock()
	if s.inParts == h.ID {
		c.server.stats.cancelled.Add(1)
		s.inParts = 0
		if c.accepted != nil { // otherwise the connection has dropped them
			s.dropParts()
			c.accepted.endArrival()
		}
	}
	if ctx != nil {
		c.server.stats.cancelled.Add(1)
		ctx.end(context.Canceled)
		if st := ctx.stream(); st != nil {
			st.stop(streamContextFailure(ctx))
		}
	}
	if s.cancels.Breathes(ctx != nil) {
		if err := c.flush(s); err != nil {
			return err
		}
		time.Sleep(cancelpace.Breather)
	}
	return nil
}

// answered handles the client's reply to a call of its server.
func (c *serverConn) answered(h wire.Header, body []byte) error {
	half, err := c.callerOf(h)
	if err != nil {
		return err
	}
	return half.answered(h, body)
}

// callerOf returns the half of the connection that may have made the call to which a frame is the
// reply.
func (c *serverConn) callerOf(h wire.Header) (callsToClient, error) {
	if h.ID&fromServer == 0 {
		return nil, wire.Errorf(wire.BadFrame, "%s frame from a client, for a call that it must have made itself", h.Type)
	}
	half := c.toClient.Load()
	if half == nil {
		return nil, wire.Errorf(wire.BadID, "%s for the call %d, which was never made", h.Type, h.ID)
	}
	return *half, nil
}

// awaits reports whether the client's reply to a call is due.
func (c *serverConn) awaits(h wire.Header) (bool, error) {
	half, err := c.callerOf(h)
	if err != nil {
		return false, err
	}
	return half.awaits(h)
}

// callsClient reports whether calls of the server are open on the connection.
func (c *serverConn) callsClient() bool {
	half := c.toClient.Load()
	return half != nil && (*half).inUse()
}

// part handles a PART frame. What it completes is the next frame that s.next returns.
func (c *serverConn) part(s *reading, h wire.Header, body []byte) error {
	var err error
	if p := s.parts; p == nil {
		err = c.beginParts(s, h, body)
	} else if err = s.takePart(h, body); len(body) == 0 && err == nil {
		if p.Head.Type == wire.TypeReply {
			return p.mayEndEarly(c.awaits)
		}
		s.inParts = 0
		c.endArrival()
	}
	if err == errNoMemory {
		return c.turnAwayParts(s)
	}
	return err
}

// beginParts handles the first PART of a frame. With it, a call is open whose REQUEST is arriving:
// later ones have larger ids, and may run before it.
func (c *serverConn) beginParts(s *reading, h wire.Header, body []byte) error {
	begun, err := s.firstPart(h, body)
	if err != nil {
		return err
	}
	if begun.Head.Type == wire.TypeReply {
		awaited, err := c.awaits(begun.Head)
		if err != nil {
			return err
		}
		return s.reader.beginParts(begun, body, awaited)
	}
	if err := c.takeID(s, h.ID); err != nil {
		return err
	}
	number, err := s.methodOf(body)
	if err != nil {
		return err
	}
	c.pings = pingLimit{}
	s.inParts = h.ID
	c.mu.Lock()
	c.arriving = !s.drained // otherwise it will be refused
	c.mu.Unlock()
	err = s.reader.beginParts(begun, body, true)
	s.parts.method = number
	return err
}

// methodOf returns the number of the method of a REQUEST frame, of which the beginning is there.
func (s *reading) methodOf(frame []byte) (number uint32, err error) {
	number = getUint32(frame[methodOffset:])
	if number == 0 || int(number) > len(s.methods) {
		return 0, wire.Errorf(wire.BadMethod, "REQUEST for the method %d, %d are named", number, len(s.methods))
	}
	return number, nil
}

// endArrival notes that the REQUEST that arrived in PARTs runs, or was dropped.
func (c *serverConn) endArrival() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arriving = false
}
