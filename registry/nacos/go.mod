module github.com/anser-rpc/anser/registry/nacos

go 1.26.0

require github.com/anser-rpc/anser v0.0.0

require go.uber.org/goleak v1.3.0 // indirect

replace github.com/anser-rpc/anser => ../..
