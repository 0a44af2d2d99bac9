module github.com/anser-rpc/anser/codec/codectest/generated

go 1.26.0

tool (
	github.com/andyleap/gencode
	github.com/pascaldekloe/colfer/cmd/colf
	github.com/tinylib/msgp
)

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/anser-rpc/anser/codec/thrift v0.0.0
	github.com/cloudwego/gopkg v0.2.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/apache/thrift v0.25.0 // indirect
	github.com/bytedance/gopkg v0.1.4 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

require (
	github.com/andyleap/gencode v0.0.0-20171124163308-e1423834d4b4 // indirect
	github.com/andyleap/parser v0.0.0-20160126201130-db5a13a7cd46 // indirect
	github.com/google/flatbuffers v25.12.19+incompatible
	github.com/kr/pretty v0.3.1 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/pascaldekloe/colfer v1.8.1 // indirect
	github.com/pascaldekloe/name v1.0.0 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/rogpeppe/go-internal v1.9.0 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	github.com/tinylib/msgp v1.6.5
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)

replace github.com/anser-rpc/anser => ../../..

replace github.com/anser-rpc/anser/codec/thrift => ../../thrift
