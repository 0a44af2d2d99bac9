// The program that make release runs.
// outside go.work: the versions of its tools must not raise those of what it releases.
module github.com/anser-rpc/anser/internal/release

go 1.26.0

require golang.org/x/mod v0.41.0
