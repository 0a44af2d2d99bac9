// outside go.work: what the peers of the arena need must not raise the versions of the library.
module github.com/anser-rpc/anser/arena/peers/anser-grpc

go 1.26.0

replace (
	github.com/anser-rpc/anser => ../../..
	github.com/anser-rpc/anser/arena/workload => ../../workload
	github.com/anser-rpc/anser/protocols => ../../../protocols
)

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/anser-rpc/anser/arena/workload v0.0.0
	github.com/anser-rpc/anser/protocols v0.0.0
	google.golang.org/grpc v1.85.0 // own version: the arena compares with the newest release
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect; own version: grpc requires a commit, the others take the release
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

require github.com/coder/websocket v1.8.15 // indirect
