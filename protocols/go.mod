module github.com/anser-rpc/anser/protocols

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.61.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/text v0.43.0 // indirect

require (
	github.com/coder/websocket v1.8.15
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
)

replace github.com/anser-rpc/anser => ..
