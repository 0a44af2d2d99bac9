// outside go.work: what the peers of the arena need must not raise the versions of the library.
module github.com/anser-rpc/anser/arena/peers/anser

go 1.26.0

replace (
	github.com/anser-rpc/anser => ../../..
	github.com/anser-rpc/anser/arena/workload => ../../workload
)

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/anser-rpc/anser/arena/workload v0.0.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
)
