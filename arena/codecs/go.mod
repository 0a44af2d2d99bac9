// The benchmark of the codecs, which arena codecs runs.
// outside go.work: the libraries that are compared must not raise the versions of what users of Anser build.
module github.com/anser-rpc/anser/arena/codecs

go 1.26.0

tool github.com/tinylib/msgp

require (
	buf.build/go/hyperpb v0.1.3
	github.com/TarsCloud/TarsGo v1.4.6
	github.com/anser-rpc/anser v0.0.0
	github.com/anser-rpc/anser/arena v0.0.0
	github.com/anser-rpc/anser/arena/peers/tars v0.0.0
	github.com/anser-rpc/anser/arena/peers/thrift-go v0.0.0
	github.com/anser-rpc/anser/arena/workload v0.0.0
	github.com/anser-rpc/anser/codec/bson v0.0.0
	github.com/anser-rpc/anser/codec/cbor v0.0.0
	github.com/anser-rpc/anser/codec/codectest/generated v0.0.0
	github.com/anser-rpc/anser/codec/flatbuffers v0.0.0
	github.com/anser-rpc/anser/codec/gojson v0.0.0
	github.com/anser-rpc/anser/codec/hessian2 v0.0.0
	github.com/anser-rpc/anser/codec/thrift v0.0.0
	github.com/apache/dubbo-go-hessian2 v1.12.5
	github.com/apache/thrift v0.25.0
	github.com/bytedance/sonic v1.15.1
	github.com/goccy/go-json v0.12.0
	github.com/hprose/hprose-golang/v3 v3.0.10
	github.com/planetscale/vtprotobuf v0.6.0
	github.com/shamaton/msgpack/v3 v3.1.0
	github.com/tinylib/msgp v1.6.5
	github.com/vmihailenco/msgpack/v5 v5.4.1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/andot/complexconv v1.0.0 // indirect
	github.com/bytedance/gopkg v0.1.4 // indirect
	github.com/bytedance/sonic/loader v0.5.1 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/dubbogo/gost v1.14.3 // indirect
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/google/flatbuffers v25.12.19+incompatible // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/cpuid/v2 v2.2.9 // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/timandy/routine v1.1.5 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.mongodb.org/mongo-driver/v2 v2.5.0 // indirect
	go.uber.org/atomic v1.10.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/arch v0.14.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

replace (
	github.com/anser-rpc/anser => ../..
	github.com/anser-rpc/anser/arena => ..
	github.com/anser-rpc/anser/arena/peers/tars => ../peers/tars
	github.com/anser-rpc/anser/arena/peers/thrift-go => ../peers/thrift-go
	github.com/anser-rpc/anser/arena/workload => ../workload
	github.com/anser-rpc/anser/codec/bson => ../../codec/bson
	github.com/anser-rpc/anser/codec/cbor => ../../codec/cbor
	github.com/anser-rpc/anser/codec/codectest/generated => ../../codec/codectest/generated
	github.com/anser-rpc/anser/codec/flatbuffers => ../../codec/flatbuffers
	github.com/anser-rpc/anser/codec/gojson => ../../codec/gojson
	github.com/anser-rpc/anser/codec/hessian2 => ../../codec/hessian2
	github.com/anser-rpc/anser/codec/thrift => ../../codec/thrift
)
