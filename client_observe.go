package anser

import "context"

// observe notifies the client's observers of an attempt that is about to be sent. An attempt that
// they refuse is over.
func (k *call) observe(ctx context.Context, e *endpoint, m *clientMethod) *Error {
	info := k.message(e, m)
	info.Bytes = len(k.frame) - int(k.head)
	if err := e.Host.observers.request(ctx, info); err != nil {
		e.Abort()
		err.Outcome, err.Phase, err.Address = NotSent, PhaseWrite, info.Address
		if err.RetryAfter == 0 {
			err.RetryAfter = RetryNever
		}
		return err
	}
	k.observed = ctx
	return nil
}

// observeReply notifies the observers of the result of an attempt.
func (k *call) observeReply(e *endpoint, m *clientMethod, err *Error) {
	ctx, info := k.observed, k.message(e, m)
	k.observed = nil
	if err == nil {
		info.Bytes = len(k.reply())
	} else {
		info.Err = err
	}
	e.Host.observers.reply(ctx, info)
}

func (k *call) message(e *endpoint, m *clientMethod) MessageInfo {
	return MessageInfo{Method: m.name, Address: e.Instance().Address, Attempt: int(k.frame[attemptOffset]), Codec: k.codec}
}
