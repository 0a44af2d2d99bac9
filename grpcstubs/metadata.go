package grpcstubs

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// fromAnser returns the metadata as gRPC has it, without the keys of this package.
func fromAnser(md anser.Metadata) metadata.MD { return stubwire.Unpack(md) }

// outgoing returns a context whose calls carry the metadata of gRPC in ctx, and what credentials
// add.
func outgoing(ctx context.Context, more metadata.MD) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx)
	if md = metadata.Join(md, more); len(md) == 0 {
		return ctx
	}
	return anser.WithMetadata(ctx, stubwire.Pack(md))
}
