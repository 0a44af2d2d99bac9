module github.com/anser-rpc/anser/transport/quic

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/quic-go/quic-go v0.65.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../..
