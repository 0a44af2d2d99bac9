module github.com/anser-rpc/anser

go 1.26

require (
	github.com/planetscale/vtprotobuf v0.6.0
	github.com/shamaton/msgpack/v3 v3.1.0
	google.golang.org/protobuf v1.36.12
)
