module github.com/anser-rpc/anser/registry/mdns

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/hashicorp/mdns v1.0.7
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.61.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/miekg/dns v1.1.73 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../..
