package main

import (
	"reflect"

	"github.com/hprose/hprose-golang/v3/io"

	"github.com/anser-rpc/anser/arena/workload"
)

// BenchmarkMessage is that of the workload as Hprose sees it: a struct. Its fields are values:
// Hprose would allocate each that is a pointer.
type BenchmarkMessage struct {
	Field1   string
	Field2   int32
	Field3   int32
	Field4   string
	Field5   []uint64
	Field6   int32
	Field7   string
	Field9   string
	Field12  bool
	Field13  bool
	Field14  bool
	Field16  int32
	Field17  bool
	Field18  string
	Field22  int64
	Field23  int32
	Field24  bool
	Field25  int32
	Field29  int32
	Field30  bool
	Field59  bool
	Field60  int32
	Field67  int32
	Field68  int32
	Field78  bool
	Field80  bool
	Field81  bool
	Field100 int32
	Field101 int32
	Field102 string
	Field103 string
	Field104 int32
	Field128 int32
	Field129 string
	Field130 int32
	Field131 int32
	Field150 int32
	Field271 int32
	Field272 int32
	Field280 int32
}

func init() { io.Register((*BenchmarkMessage)(nil)) }

// fromProto returns a message of the workload as Hprose's.
func fromProto(m *workload.BenchmarkMessage) *BenchmarkMessage {
	h := new(BenchmarkMessage)
	to, from := reflect.ValueOf(h).Elem(), reflect.ValueOf(m).Elem()
	for i := range to.NumField() {
		dst, src := to.Field(i), from.FieldByName(to.Type().Field(i).Name)
		switch {
		case src.Kind() == reflect.Slice:
			dst.Set(src)
		case !src.IsNil():
			dst.Set(src.Elem())
		}
	}
	return h
}

// toProto is its inverse. A struct does not tell a field of zero from one that is not set.
func toProto(h *BenchmarkMessage) *workload.BenchmarkMessage {
	m := new(workload.BenchmarkMessage)
	to, from := reflect.ValueOf(m).Elem(), reflect.ValueOf(h).Elem()
	for i := range from.NumField() {
		src, dst := from.Field(i), to.FieldByName(from.Type().Field(i).Name)
		switch {
		case src.Kind() == reflect.Slice:
			dst.Set(src)
		case !src.IsZero():
			dst.Set(reflect.New(src.Type()))
			dst.Elem().Set(src)
		}
	}
	return m
}
