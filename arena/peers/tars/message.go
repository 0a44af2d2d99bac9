package main

import (
	"reflect"

	"github.com/anser-rpc/anser/arena/peers/tars/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// fromProto returns a message of the workload as Tars's.
func fromProto(m *workload.BenchmarkMessage) *benchmark.Message {
	t := new(benchmark.Message)
	to, from := reflect.ValueOf(t).Elem(), reflect.ValueOf(m).Elem()
	for i := range to.NumField() {
		dst, src := to.Field(i), from.FieldByName(to.Type().Field(i).Name)
		switch {
		case src.Kind() == reflect.Slice:
			for j := range src.Len() {
				dst.Set(reflect.Append(dst, reflect.ValueOf(int64(src.Index(j).Uint()))))
			}
		case !src.IsNil():
			dst.Set(src.Elem())
		}
	}
	return t
}

// toProto is its inverse. Tars does not tell a field of zero from one that is not set.
func toProto(t *benchmark.Message) *workload.BenchmarkMessage {
	m := new(workload.BenchmarkMessage)
	to, from := reflect.ValueOf(m).Elem(), reflect.ValueOf(t).Elem()
	for i := range from.NumField() {
		src, dst := from.Field(i), to.FieldByName(from.Type().Field(i).Name)
		switch {
		case src.Kind() == reflect.Slice:
			for j := range src.Len() {
				dst.Set(reflect.Append(dst, reflect.ValueOf(uint64(src.Index(j).Int()))))
			}
		case !src.IsZero():
			dst.Set(reflect.New(src.Type()))
			dst.Elem().Set(src)
		}
	}
	return m
}
