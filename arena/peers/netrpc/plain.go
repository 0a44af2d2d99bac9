package main

import (
	"github.com/anser-rpc/anser/arena/workload"
)

// Plain is the message of say without generated code. Gob does not distinguish a missing field
// from a zero one, so the payloads with few fields work, too.
type Plain struct {
	Field1   string
	Field9   string
	Field18  string
	Field80  bool
	Field81  bool
	Field2   int32
	Field3   int32
	Field280 int32
	Field6   int32
	Field22  int64
	Field4   string
	Field5   []uint64
	Field59  bool
	Field7   string
	Field16  int32
	Field130 int32
	Field12  bool
	Field17  bool
	Field13  bool
	Field14  bool
	Field104 int32
	Field100 int32
	Field101 int32
	Field102 string
	Field103 string
	Field29  int32
	Field30  bool
	Field60  int32
	Field271 int32
	Field272 int32
	Field150 int32
	Field23  int32
	Field24  bool
	Field25  int32
	Field78  bool
	Field67  int32
	Field68  int32
	Field128 int32
	Field129 string
	Field131 int32
}

// GetField1 is a field that the reply of say is checked by.
func (p *Plain) GetField1() string { return p.Field1 }

// GetField2 is a field that the reply of say is checked by.
func (p *Plain) GetField2() int32 { return p.Field2 }

// plain converts the message that the client sends, once for all calls.
func plain(m *workload.BenchmarkMessage) *Plain {
	return &Plain{
		Field1:   zero(m.Field1),
		Field9:   zero(m.Field9),
		Field18:  zero(m.Field18),
		Field80:  zero(m.Field80),
		Field81:  zero(m.Field81),
		Field2:   zero(m.Field2),
		Field3:   zero(m.Field3),
		Field280: zero(m.Field280),
		Field6:   zero(m.Field6),
		Field22:  zero(m.Field22),
		Field4:   zero(m.Field4),
		Field5:   m.Field5,
		Field59:  zero(m.Field59),
		Field7:   zero(m.Field7),
		Field16:  zero(m.Field16),
		Field130: zero(m.Field130),
		Field12:  zero(m.Field12),
		Field17:  zero(m.Field17),
		Field13:  zero(m.Field13),
		Field14:  zero(m.Field14),
		Field104: zero(m.Field104),
		Field100: zero(m.Field100),
		Field101: zero(m.Field101),
		Field102: zero(m.Field102),
		Field103: zero(m.Field103),
		Field29:  zero(m.Field29),
		Field30:  zero(m.Field30),
		Field60:  zero(m.Field60),
		Field271: zero(m.Field271),
		Field272: zero(m.Field272),
		Field150: zero(m.Field150),
		Field23:  zero(m.Field23),
		Field24:  zero(m.Field24),
		Field25:  zero(m.Field25),
		Field78:  zero(m.Field78),
		Field67:  zero(m.Field67),
		Field68:  zero(m.Field68),
		Field128: zero(m.Field128),
		Field129: zero(m.Field129),
		Field131: zero(m.Field131),
	}
}

// zero is like the generated getters without the defaults of the schema.
func zero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// message converts back, for the test that compares bytes.
func (p *Plain) message() *workload.BenchmarkMessage {
	return &workload.BenchmarkMessage{
		Field1:   set(p.Field1),
		Field9:   set(p.Field9),
		Field18:  set(p.Field18),
		Field80:  set(p.Field80),
		Field81:  set(p.Field81),
		Field2:   set(p.Field2),
		Field3:   set(p.Field3),
		Field280: set(p.Field280),
		Field6:   set(p.Field6),
		Field22:  set(p.Field22),
		Field4:   set(p.Field4),
		Field5:   p.Field5,
		Field59:  set(p.Field59),
		Field7:   set(p.Field7),
		Field16:  set(p.Field16),
		Field130: set(p.Field130),
		Field12:  set(p.Field12),
		Field17:  set(p.Field17),
		Field13:  set(p.Field13),
		Field14:  set(p.Field14),
		Field104: set(p.Field104),
		Field100: set(p.Field100),
		Field101: set(p.Field101),
		Field102: set(p.Field102),
		Field103: set(p.Field103),
		Field29:  set(p.Field29),
		Field30:  set(p.Field30),
		Field60:  set(p.Field60),
		Field271: set(p.Field271),
		Field272: set(p.Field272),
		Field150: set(p.Field150),
		Field23:  set(p.Field23),
		Field24:  set(p.Field24),
		Field25:  set(p.Field25),
		Field78:  set(p.Field78),
		Field67:  set(p.Field67),
		Field68:  set(p.Field68),
		Field128: set(p.Field128),
		Field129: set(p.Field129),
		Field131: set(p.Field131),
	}
}

// set is the pointer of an optional field.
func set[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
