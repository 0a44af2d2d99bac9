package main

import (
	"bytes"
	"encoding/gob"
	"fmt"

	hessian "github.com/apache/dubbo-go-hessian2"
	hprose "github.com/hprose/hprose-golang/v3/io"

	"github.com/anser-rpc/anser/internal/benchpb"
)

// ofGob encodes into one stream and decodes from one, as net/rpc does for each connection: the
// description of the type goes through it once, before what is measured.
func ofGob(data *benchpb.Plain) subject {
	var out bytes.Buffer
	var in bytes.Reader
	encoder, decoder := gob.NewEncoder(&out), gob.NewDecoder(&in)
	return of("gob, plain struct, in a stream", "", data,
		func(dst []byte, m *benchpb.Plain) ([]byte, error) {
			out.Reset()
			if err := encoder.Encode(m); err != nil {
				return nil, err
			}
			return append(dst, out.Bytes()...), nil
		},
		func(data []byte, m *benchpb.Plain) error {
			in.Reset(data)
			return decoder.Decode(m)
		})
}

// javaMessage has the name that Hessian puts into each message.
type javaMessage benchpb.Plain

// JavaClassName makes it a hessian.POJO.
func (*javaMessage) JavaClassName() string { return "arena.BenchmarkMessage" }

func ofHessian(data *benchpb.Plain) subject {
	hessian.RegisterPOJO(new(javaMessage))
	message := (*javaMessage)(data)
	return subject{
		name: "Hessian 2, plain struct", module: "github.com/apache/dubbo-go-hessian2",
		encode: func([]byte) ([]byte, error) {
			e := hessian.NewEncoder()
			err := e.Encode(message)
			return e.Buffer(), err
		},
		decode: func(data []byte) (any, error) { return hessian.NewDecoder(data).Decode() },
		same: func(decoded any) error {
			m, ok := decoded.(*javaMessage)
			if !ok {
				return fmt.Errorf("decoded is a %T", decoded)
			}
			return differ(message, m)
		},
	}
}

func ofHprose(data *benchpb.Plain) subject {
	hprose.Register((*benchpb.Plain)(nil))
	return of("hprose, plain struct", "github.com/hprose/hprose-golang/v3", data,
		func(_ []byte, m *benchpb.Plain) ([]byte, error) { return hprose.Marshal(m) },
		func(data []byte, m *benchpb.Plain) error { return hprose.Unmarshal(data, m) })
}
