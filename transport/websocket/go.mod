module github.com/anser-rpc/anser/transport/websocket

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/coder/websocket v1.8.15
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../..
