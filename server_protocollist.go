package anser

import "github.com/anser-rpc/anser/internal/mono"

// ListMethods is [ProtocolConn.Methods] for a list that the client has asked for. The list counts
// as a call of Anser.Methods for the observers of requests, such as limits of the calls of each
// caller. They may refuse it; the error is then theirs.
func (p *ProtocolConn) ListMethods() ([]MethodType, *Error) {
	list, fault := p.Methods()
	if fault == nil {
		fault = p.observeList()
	}
	if fault != nil {
		return nil, fault
	}
	return list, nil
}

// observeList passes a list of methods to the observers of requests and replies.
func (p *ProtocolConn) observeList() (fault *Error) {
	s := p.conn.server
	if !s.o.observers.followMessages() {
		return nil
	}
	m, _ := s.table.find(MethodsName, false)
	if m == nil { // with NoDescribe there is nothing to list
		return nil
	}
	k := p.newCall(&ProtocolRequest{Method: m.name, Priority: Normal}, m, nil, mono.Now())
	defer k.ctx.finish()
	defer func() {
		if p := recover(); p != nil {
			fault = s.panicError(k.ctx, panicRequest, p)
		}
		if fault != nil {
			s.countRefusal(m, fault)
		}
	}()
	if fault = s.observeRequest(k.ctx, 0); fault == nil {
		s.observeReply(k.ctx, nil)
	}
	return fault
}
