// The message of say in Thrift's types, and its bytes as protobuf for the test of the contract.
#pragma once

#include <cstdint>
#include <string>

#include "benchmark_types.h"
#include "cpp/message.h"

// The optional fields by number. Thrift has no reflection in C++.
#define ARENA_OPTIONAL_FIELDS(X) \
  X(text, 4) X(integer, 6) X(text, 7) X(text, 9) X(flag, 12) X(flag, 13) X(flag, 14) \
  X(integer, 16) X(flag, 17) X(text, 18) X(integer, 22) X(integer, 23) X(flag, 24) \
  X(integer, 25) X(integer, 29) X(flag, 30) X(flag, 59) X(integer, 60) X(integer, 67) \
  X(integer, 68) X(flag, 78) X(flag, 80) X(flag, 81) X(integer, 100) X(integer, 101) \
  X(text, 102) X(text, 103) X(integer, 104) X(integer, 128) X(text, 129) X(integer, 130) \
  X(integer, 131) X(integer, 150) X(integer, 271) X(integer, 272) X(integer, 280)

namespace arena {

inline void set_text(std::string& field) { field = kText; }
inline void set_flag(bool& field) { field = true; }
template <class Integer>
void set_integer(Integer& field) { field = kInteger; }

// Returns the request of say that has so many bytes as protobuf.
inline idl::BenchmarkMessage new_message(int payload) {
  idl::BenchmarkMessage m;
  if (payload != kStandardPayload) {
    m.field1 = "x";
    m.field2 = m.field3 = 1;
    m.__set_field9(std::string(padding(payload), 'x'));
    return m;
  }
  m.field1 = kText;
  m.field2 = m.field3 = kInteger;
#define X(kind, number)            \
  set_##kind(m.field##number);     \
  m.__isset.field##number = true;
  ARENA_OPTIONAL_FIELDS(X)
#undef X
  return m;
}

// Protobuf's encoding of the fields, so that the peer builds without protobuf.
class ProtobufBytes {
 public:
  void text(int number, const std::string& v) {
    varint(static_cast<uint64_t>(number) << 3 | 2);
    varint(v.size());
    out += v;
  }
  void flag(int number, bool v) { integer(number, v); }
  void integer(int number, int64_t v) {
    varint(static_cast<uint64_t>(number) << 3);
    varint(static_cast<uint64_t>(v));
  }

  std::string out;

 private:
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
    out.push_back(static_cast<char>(v));
  }
};

// Returns the message as protobuf encodes it. The repeated field is always empty.
inline std::string protobuf_bytes(const idl::BenchmarkMessage& m) {
  ProtobufBytes b;
  b.text(1, m.field1);
  b.integer(2, m.field2);
  b.integer(3, m.field3);
#define X(kind, number) \
  if (m.__isset.field##number) b.kind(number, m.field##number);
  ARENA_OPTIONAL_FIELDS(X)
#undef X
  return b.out;
}

}  // namespace arena
