// What the messages of all encodings have in common.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

#include "options.h"

namespace arena {

// The values of the message of 581 bytes.
inline constexpr char kText[] = "许多往事在眼前一幕一幕，变的那麼模糊";
inline constexpr int kInteger = 100000;
inline constexpr int kStandardPayload = 581;
inline constexpr int kLeastPayload = 64;

// What a server sets in the message.
inline constexpr char kAnswerField1[] = "OK";
inline constexpr int kAnswerField2 = 100;

// The request of add.
inline constexpr int kAddModulus = 1000000;
inline constexpr int kAddB = 7;

// Returns how long field9 has to be for a message of so many bytes as protobuf, which has field1 = "x",
// field2 = 1 and field3 = 1 besides: 3 + 2 + 2 bytes, then a tag, a length and the text.
inline int padding(int payload) {
  if (payload < kLeastPayload)
    throw UsageError("--payload " + std::to_string(payload) + ": " + std::to_string(kLeastPayload) + " is the least");
  for (int pad = payload - 7; pad > 0; pad--) {
    int size = 7 + 1 + pad;
    for (int rest = pad; rest > 0; rest >>= 7) size++;
    if (size == payload) return pad;
    if (size < payload) break;
  }
  throw UsageError("--payload " + std::to_string(payload) + ": no message has that size, " +
                   std::to_string(payload + 1) + " has");
}

// Keeps a core busy as long as the server was told to.
inline void work(const ServerOptions& o) {
  if (o.work_us == 0) return;
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::microseconds(o.work_us); Clock::now() < end;) {
  }
}

}  // namespace arena
