// The messages and services of ../../workload/*.proto, field for field. The fields have no defaults:
// Thrift leaves a field out that equals its default, and the workload sends every field that is set.
namespace go benchmark

struct BenchmarkMessage {
  1: required string field1
  9: optional string field9
  18: optional string field18
  80: optional bool field80
  81: optional bool field81
  2: required i32 field2
  3: required i32 field3
  280: optional i32 field280
  6: optional i32 field6
  22: optional i64 field22
  4: optional string field4
  5: optional list<i64> field5
  59: optional bool field59
  7: optional string field7
  16: optional i32 field16
  130: optional i32 field130
  12: optional bool field12
  17: optional bool field17
  13: optional bool field13
  14: optional bool field14
  104: optional i32 field104
  100: optional i32 field100
  101: optional i32 field101
  102: optional string field102
  103: optional string field103
  29: optional i32 field29
  30: optional bool field30
  60: optional i32 field60
  271: optional i32 field271
  272: optional i32 field272
  150: optional i32 field150
  23: optional i32 field23
  24: optional bool field24
  25: optional i32 field25
  78: optional bool field78
  67: optional i32 field67
  68: optional i32 field68
  128: optional i32 field128
  129: optional string field129
  131: optional i32 field131
}

service Hello {
  BenchmarkMessage say(1: BenchmarkMessage message)
}

struct AddRequest {
  1: i32 a
  2: i32 b
}

struct AddReply {
  1: i32 x
}

service MathService {
  AddReply add(1: AddRequest request)
}
