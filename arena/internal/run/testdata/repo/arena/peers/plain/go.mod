// outside go.work: it is a peer, which the runner builds by itself.
module github.com/anser-rpc/anser/arena/internal/run/testdata/repo/arena/peers/plain

go 1.26.0

require github.com/anser-rpc/anser/arena/workload v0.0.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser/arena/workload => ../../../../../../../workload
