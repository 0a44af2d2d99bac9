package filetransfer

import (
	"context"
	"io"

	"github.com/anser-rpc/anser"
)

// CheckPath is for the fuzz test.
var CheckPath = checkPath

// PartOf is for tests of the unfinished file's path.
var PartOf = partOf

// PutAgain is PutFrom for a client that has sent everything before, but then lost its connection.
func PutAgain(ctx context.Context, c *anser.Client, src io.ReaderAt, size int64, remote, id, sum string, opts ...Option) (Result, error) {
	p, err := newPutting(c, src, size, remote, opts)
	if err != nil {
		return Result{}, err
	}
	p.head.ID, p.head.Sum, p.begun = id, sum, true
	return p.run(ctx)
}
