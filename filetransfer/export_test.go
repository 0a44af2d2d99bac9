package filetransfer

import (
	"context"
	"io"

	"github.com/anser-rpc/anser"
)

// CheckPath is for the fuzz test.
var CheckPath = checkPath

// PartOf is for a test of what lies in the way.
var PartOf = partOf

// PutAgain is PutFrom for a client that has sent everything before, and has lost its connection then.
func PutAgain(ctx context.Context, c *anser.Client, src io.ReaderAt, size int64, remote, id, sum string, opts ...Option) (Result, error) {
	p, err := newPutting(c, src, size, remote, opts)
	if err != nil {
		return Result{}, err
	}
	p.head.ID, p.head.Sum, p.begun = id, sum, true
	return p.run(ctx)
}
