module github.com/anser-rpc/anser/codec/hessian2

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/apache/dubbo-go-hessian2 v1.12.5
	go.uber.org/goleak v1.3.0
)

require (
	github.com/dubbogo/gost v1.14.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	go.uber.org/atomic v1.10.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../..
