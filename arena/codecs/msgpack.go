package main

import (
	"github.com/shamaton/msgpack/v3"
	vmihailenco "github.com/vmihailenco/msgpack/v5"

	"github.com/anser-rpc/anser/internal/benchpb"
)

func ofMsgpack(data *benchpb.Plain) []subject {
	return []subject{
		of("MessagePack, msgp's code", "github.com/tinylib/msgp", (*Message)(data),
			func(dst []byte, m *Message) ([]byte, error) { return m.MarshalMsg(dst) },
			func(data []byte, m *Message) error {
				_, err := m.UnmarshalMsg(data)
				return err
			}),
		of("MessagePack, plain struct", "github.com/shamaton/msgpack/v3", data,
			func(_ []byte, m *benchpb.Plain) ([]byte, error) { return msgpack.MarshalAsMap(m) },
			func(data []byte, m *benchpb.Plain) error { return msgpack.UnmarshalAsMap(data, m) }),
		of("MessagePack, plain struct", "github.com/vmihailenco/msgpack/v5", data,
			func(_ []byte, m *benchpb.Plain) ([]byte, error) { return vmihailenco.Marshal(m) },
			func(data []byte, m *benchpb.Plain) error { return vmihailenco.Unmarshal(data, m) }),
	}
}
