package anser

import (
	"context"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/wire"
)

// PeerFrom returns the caller of the handler that ctx belongs to.
func PeerFrom(ctx context.Context) (Peer, bool) {
	c := callFrom(ctx)
	if c == nil {
		return Peer{}, false
	}
	return c.conn.peerInfo(), true
}

// AttemptFrom returns the number of the attempt that ctx's handler serves: 0 for the first.
func AttemptFrom(ctx context.Context) int {
	if c := callFrom(ctx); c != nil {
		return int(c.attempt)
	}
	return 0
}

// IdentityFrom returns the identity of the caller of the handler that ctx belongs to, or nil on a
// server without [Authenticate]. Its subject is the one with which the call was admitted, since
// no renewal changes the subject of a connection. The groups and the end are those of the latest
// renewal, so the handler of a stream that calls IdentityFrom per message notices when a group
// has been removed.
func IdentityFrom(ctx context.Context) *Identity {
	if c := callFrom(ctx); c != nil {
		return c.conn.identity()
	}
	return nil
}

// MetadataFrom returns the metadata that the caller sent with its request, or nil. ctx is the
// context of a handler. The caller of MetadataFrom may keep and change the result.
func MetadataFrom(ctx context.Context) Metadata {
	if c := callFrom(ctx); c != nil && c.extras != nil {
		return metadataOf(c.extras.metadata)
	}
	return nil
}

// MetadataValue returns the value that MetadataFrom has under the key, which is in lower case, or
// "". It is cheaper for a single value.
func MetadataValue(ctx context.Context, key string) string {
	if c := callFrom(ctx); c != nil && c.extras != nil && key != wire.IdempotencyKey {
		return wire.MetadataValue(c.extras.metadata, key)
	}
	return ""
}

// SetTrailer sends a value back with the reply (or error) of the call that ctx belongs to. It
// fails when the key or value is not allowed in metadata, or ctx is not the context of a handler.
func SetTrailer(ctx context.Context, key, value string) error {
	c := callFrom(ctx)
	if c == nil {
		return fmt.Errorf("set trailer %q: the context is not that of a handler", key)
	}
	p := wire.Pair{Key: strings.ToLower(key), Value: value}
	if err := wire.CheckPair(p); err != nil {
		return fmt.Errorf("set trailer: %w", err)
	}
	return c.setTrailer(p)
}

// IdempotencyKeyFrom returns the key of the call that ctx belongs to, or "". ctx is the context
// of a handler.
func IdempotencyKeyFrom(ctx context.Context) string {
	if c := callFrom(ctx); c != nil && c.extras != nil {
		return c.extras.key
	}
	return ""
}
