// outside go.work: the versions that a peer needs must not raise those of what users of Anser build.
module github.com/anser-rpc/anser/arena/peers/tars

go 1.26.0

require (
	github.com/TarsCloud/TarsGo v1.4.6
	github.com/anser-rpc/anser/arena/workload v0.0.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	go.uber.org/automaxprocs v1.5.2 // indirect
)

replace github.com/anser-rpc/anser/arena/workload => ../../workload
