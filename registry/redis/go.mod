module github.com/anser-rpc/anser/registry/redis

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/redis/rueidis v1.0.79
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/anser-rpc/anser => ../..
