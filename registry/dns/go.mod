module github.com/anser-rpc/anser/registry/dns

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/miekg/dns v1.1.73
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.61.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../..
