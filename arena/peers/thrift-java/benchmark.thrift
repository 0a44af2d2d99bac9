// The messages and services of workload/benchmark.proto and workload/math.proto. What is generated from
// them is kept, as another version of the compiler needs another version of libthrift. With thrift 0.17.0:
//
//   thrift --gen java:generated_annotations=suppress -out src/main/java benchmark.thrift
//
// Defaults are left out: Thrift would send a field that has one even where it was not set, and protobuf
// does not.
namespace java arena.thrift.idl

struct BenchmarkMessage {
  1: required string field1
  2: required i32 field2
  3: required i32 field3
  4: optional string field4
  5: optional list<i64> field5
  6: optional i32 field6
  7: optional string field7
  9: optional string field9
  12: optional bool field12
  13: optional bool field13
  14: optional bool field14
  16: optional i32 field16
  17: optional bool field17
  18: optional string field18
  22: optional i64 field22
  23: optional i32 field23
  24: optional bool field24
  25: optional i32 field25
  29: optional i32 field29
  30: optional bool field30
  59: optional bool field59
  60: optional i32 field60
  67: optional i32 field67
  68: optional i32 field68
  78: optional bool field78
  80: optional bool field80
  81: optional bool field81
  100: optional i32 field100
  101: optional i32 field101
  102: optional string field102
  103: optional string field103
  104: optional i32 field104
  128: optional i32 field128
  129: optional string field129
  130: optional i32 field130
  131: optional i32 field131
  150: optional i32 field150
  271: optional i32 field271
  272: optional i32 field272
  280: optional i32 field280
}

service Hello {
  BenchmarkMessage Say(1: BenchmarkMessage message)
}

// It extends Hello so that one server has both services, as the contract asks, and names travel without
// the prefix that a TMultiplexedProcessor would have to look for in each call.
service MathService extends Hello {
  i32 Add(1: i32 a, 2: i32 b)
}
