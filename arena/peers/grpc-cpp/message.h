// The messages of the workloads in protobuf's types, and what a method of each needs.
#pragma once

#include <google/protobuf/arena.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "benchmark.pb.h"
#include "cpp/message.h"
#include "math.pb.h"

namespace arena {

using workload::AddReply;
using workload::AddRequest;
using workload::BenchmarkMessage;

// Returns the request of say that has so many bytes.
inline BenchmarkMessage new_message(int payload) {
  BenchmarkMessage m;
  if (payload != kStandardPayload) {
    m.set_field1("x");
    m.set_field2(1);
    m.set_field3(1);
    m.set_field9(std::string(padding(payload), 'x'));
    return m;
  }
  using Field = google::protobuf::FieldDescriptor;
  for (int i = 0; i < m.GetDescriptor()->field_count(); i++) {
    const Field* f = m.GetDescriptor()->field(i);
    if (f->is_repeated()) continue;
    const google::protobuf::Reflection* r = m.GetReflection();
    switch (f->cpp_type()) {
      case Field::CPPTYPE_STRING:
        r->SetString(&m, f, kText);
        break;
      case Field::CPPTYPE_BOOL:
        r->SetBool(&m, f, true);
        break;
      case Field::CPPTYPE_INT32:
        r->SetInt32(&m, f, kInteger);
        break;
      case Field::CPPTYPE_INT64:
        r->SetInt64(&m, f, kInteger);
        break;
      default:
        throw std::logic_error("benchmark.proto has a field of a new type: set it here");
    }
  }
  return m;
}

// Returns the bytes of a request of say.
inline std::string encoded(int payload) { return new_message(payload).SerializeAsString(); }

// Makes a request of say its reply.
inline void answer(BenchmarkMessage& m) {
  m.set_field1(kAnswerField1);
  m.set_field2(kAnswerField2);
}

inline bool is_right(const BenchmarkMessage& reply) {
  return reply.field1() == kAnswerField1 && reply.field2() == kAnswerField2;
}

// The memory of one message at a time: room for the standard one, so that decoding it allocates nothing
// but the text of its strings. The message is a new one each time.
class MessageMemory {
 public:
  MessageMemory() : arena_(options(block_)) {}

  template <class Message>
  Message* create() {
    return google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

  // Destroys the message.
  void reset() { arena_.Reset(); }

 private:
  using Block = std::array<char, 2048>;

  static google::protobuf::ArenaOptions options(Block& block) {
    google::protobuf::ArenaOptions o;
    o.initial_block = block.data();
    o.initial_block_size = block.size();
    return o;
  }

  alignas(std::max_align_t) Block block_;
  google::protobuf::Arena arena_;
};

}  // namespace arena
