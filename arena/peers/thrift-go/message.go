package main

import (
	"reflect"

	"github.com/anser-rpc/anser/arena/peers/thrift-go/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// fromProto returns a message of the workload as Thrift's.
func fromProto(m *workload.BenchmarkMessage) *benchmark.BenchmarkMessage {
	t := new(benchmark.BenchmarkMessage)
	copyFields(reflect.ValueOf(t).Elem(), reflect.ValueOf(m).Elem())
	return t
}

// toProto is its inverse.
func toProto(t *benchmark.BenchmarkMessage) *workload.BenchmarkMessage {
	m := new(workload.BenchmarkMessage)
	copyFields(reflect.ValueOf(m).Elem(), reflect.ValueOf(t).Elem())
	return m
}

// copyFields sets the exported fields of to from those of the same names. In protobuf's struct
// required fields are pointers, in Thrift's they are values.
func copyFields(to, from reflect.Value) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		dst, src := to.Field(i), from.FieldByName(field.Name)
		switch {
		case dst.Type() == src.Type():
			dst.Set(src)
		case src.Kind() == reflect.Pointer:
			dst.Set(src.Elem())
		case dst.Kind() == reflect.Pointer:
			dst.Set(reflect.New(src.Type()))
			dst.Elem().Set(src)
		}
	}
}
