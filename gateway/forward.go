package gateway

import (
	"context"

	"github.com/anser-rpc/anser"
)

// forward chooses where a call over Anser's own protocol goes. It goes on frame by frame, without
// being decoded: see anser.Forward.
func (g *Gateway) forward(ctx context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
	e := (*g.methods.offered.Load())[call.Method]
	if e == nil {
		return nil, "", nil
	}
	md := anser.MetadataFrom(ctx)
	u, c, err := g.choose(ctx, e, md)
	if err != nil {
		g.counts.refused.Add(1)
		return nil, "", err
	}
	call.Ended = u.left
	g.counts.calls.Add(1)
	id := anser.IdentityFrom(ctx)
	for _, key := range []string{callerKey, groupsKey} {
		if _, claimed := md[key]; claimed || id != nil {
			call.Set = anser.Metadata{callerKey: "", groupsKey: ""}
		}
	}
	if id != nil {
		nameIdentity(id, call.Set)
	}
	if before, claimed := md[forwardedKey]; claimed { // it must not be taken for the address of the caller
		if call.Set == nil {
			call.Set = make(anser.Metadata)
		}
		call.Set[forwardedKey] = before
		addAddress(ctx, call.Set)
	}
	return c, e.method.name, nil
}
