module github.com/anser-rpc/anser/codec/cbor

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/fxamacker/cbor/v2 v2.9.6
	go.uber.org/goleak v1.3.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../..
