// outside go.work: what the peers of the arena need must not raise the versions of the library.
module github.com/anser-rpc/anser/arena/peers/drpc

go 1.26.0

replace github.com/anser-rpc/anser/arena/workload => ../../workload

require (
	github.com/anser-rpc/anser/arena/workload v0.0.0
	storj.io/drpc v0.0.34
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	github.com/zeebo/errs v1.2.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
