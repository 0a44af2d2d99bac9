package protocols

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// SetEventID gives the next message that the handler of a stream sends an id, if its messages are
// events for a browser (text/event-stream). A client that has lost its connection makes the call
// again with the id of the last event that it has seen; see [LastEventID]. Events without an id
// leave the client's last one as it is, and "" takes it back. Over all other protocols it does
// nothing. ctx is the context of the handler. An id with a line break or NUL is an error.
func SetEventID(ctx context.Context, id string) error {
	if strings.ContainsAny(id, "\r\n\x00") {
		return fmt.Errorf("protocols.SetEventID: the id %q has a line break or NUL, which events cannot carry", id)
	}
	if ctx == nil {
		return errors.New("protocols.SetEventID: the context is nil: pass that of the handler")
	}
	exchange.SetEventID(ctx, id)
	return nil
}

// LastEventID returns the id of the last event that the client of a stream has seen before it lost
// its connection (the header Last-Event-ID), or "". The handler decides what it means, and should
// begin after it. A client can send any value. ctx is the context of the handler.
func LastEventID(ctx context.Context) string {
	if r := RequestFrom(ctx); r != nil {
		return r.Header.Get("Last-Event-ID")
	}
	return ""
}
