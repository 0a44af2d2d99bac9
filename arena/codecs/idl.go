package main

import (
	"context"
	"reflect"

	"github.com/TarsCloud/TarsGo/tars/protocol/codec"
	"github.com/apache/thrift/lib/go/thrift"

	tars "github.com/anser-rpc/anser/arena/peers/tars/benchmark"
	thriftmessage "github.com/anser-rpc/anser/arena/peers/thrift-go/benchmark"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// convert sets the fields of a message that a compiler has made from those of the same names.
func convert(to any, from *benchpb.Plain) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range src.NumField() {
		field := dst.FieldByName(src.Type().Field(i).Name)
		value := src.Field(i)
		switch {
		case value.Kind() == reflect.Slice: // it is empty
		case field.Kind() == reflect.Pointer:
			field.Set(reflect.New(value.Type()))
			field.Elem().Set(value)
		default:
			field.Set(value)
		}
	}
}

func ofThrift(data *benchpb.Plain) []subject {
	message := new(thriftmessage.BenchmarkMessage)
	convert(message, data)
	one := func(name string, protocol func(thrift.TTransport) thrift.TProtocol) subject {
		out, in := thrift.NewTMemoryBuffer(), thrift.NewTMemoryBuffer()
		to, from := protocol(out), protocol(in)
		ctx := context.Background()
		return of(name, "github.com/apache/thrift", message,
			func(dst []byte, m *thriftmessage.BenchmarkMessage) ([]byte, error) {
				out.Reset()
				if err := m.Write(ctx, to); err != nil {
					return nil, err
				}
				return append(dst, out.Bytes()...), to.Flush(ctx)
			},
			func(data []byte, m *thriftmessage.BenchmarkMessage) error {
				in.Reset()
				in.Write(data)
				return m.Read(ctx, from)
			})
	}
	return []subject{
		one("Thrift, binary", func(t thrift.TTransport) thrift.TProtocol { return thrift.NewTBinaryProtocolConf(t, nil) }),
		one("Thrift, compact", func(t thrift.TTransport) thrift.TProtocol { return thrift.NewTCompactProtocolConf(t, nil) }),
	}
}

func ofTars(data *benchpb.Plain) subject {
	message := new(tars.Message)
	convert(message, data)
	return of("Tars", "github.com/TarsCloud/TarsGo", message,
		func(_ []byte, m *tars.Message) ([]byte, error) {
			b := codec.NewBuffer()
			err := m.WriteTo(b)
			return b.ToBytes(), err
		},
		func(data []byte, m *tars.Message) error { return m.ReadFrom(codec.NewReader(data)) })
}
