module github.com/anser-rpc/anser/gateway

go 1.26.0

require (
	github.com/anser-rpc/anser v0.0.0
	github.com/anser-rpc/anser/auth/jwt v0.0.0-00010101000000-000000000000
	github.com/anser-rpc/anser/protocols v0.0.0
	github.com/golang-jwt/jwt/v5 v5.3.1
	go.yaml.in/yaml/v3 v3.0.5
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/shamaton/msgpack/v3 v3.1.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

replace github.com/anser-rpc/anser => ..

replace github.com/anser-rpc/anser/protocols => ../protocols

replace github.com/anser-rpc/anser/auth/jwt => ../auth/jwt
