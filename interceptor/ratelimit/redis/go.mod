module github.com/anser-rpc/anser/interceptor/ratelimit/redis

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/anser-rpc/anser => ../../..
