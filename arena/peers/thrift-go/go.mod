// outside go.work: the versions that a peer needs must not raise those of what users of Anser build.
module github.com/anser-rpc/anser/arena/peers/thrift-go

go 1.26.0

require (
	github.com/anser-rpc/anser/arena/workload v0.0.0-00010101000000-000000000000
	github.com/apache/thrift v0.25.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser/arena/workload => ../../workload
