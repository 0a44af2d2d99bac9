// outside go.work: the generators need versions that must not raise those of the library
module github.com/anser-rpc/anser/internal/tools

go 1.26.0

require (
	github.com/bufbuild/protocompile v0.14.2-0.20260605203730-cd7c3c124e10
	google.golang.org/protobuf v1.36.12
)

require (
	connectrpc.com/connect/v2 v2.0.2 // indirect
	github.com/petermattis/goid v0.0.0-20260113132338-7c7de50cc741 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

tool (
	connectrpc.com/connect/v2/cmd/protoc-gen-connect-go
	github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	google.golang.org/protobuf/cmd/protoc-gen-go
)
