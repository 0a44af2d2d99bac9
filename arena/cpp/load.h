// The load of CONTRACT.md: callers that call one after another, in a closed or an open loop, and what
// they saw. Its semantics are those of workload/load.go.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hdr.h"
#include "options.h"

namespace arena {

// How a call ended. Everything that is not a right reply or a wrong one is an error.
enum class Outcome { right, wrong, error };

// Set by SIGTERM and SIGINT: callers make no further calls.
inline std::atomic<bool> stopped{false};

// A caller, or one of the calls that it keeps in flight. Padding keeps two of them off a cache line.
struct alignas(128) Slot {
  int64_t start = 0;  // of the call under way, nanoseconds since the load's epoch
  int64_t made = 0;   // calls, in an open loop: says when the next one is due
  int64_t calls = 0, errors = 0, wrong = 0;
  int64_t last = 0;  // end of the last measured call
  std::string first_error;
};

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  // Keeps a caller from spinning on a dead server.
  static constexpr std::chrono::milliseconds kErrorPause{10};

  // Between two looks of a waiting caller at whether the load is over.
  static constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(1);

  enum class Turn { call, wait, over };

  explicit Load(const ClientOptions& o)
      : o_(o),
        from_(nanoseconds(o.warmup_s)),
        until_(o.calls > 0 ? INT64_MAX : nanoseconds(o.warmup_s + o.seconds)),
        left_(o.calls),
        slots_(static_cast<size_t>(o.callers) * o.window),
        shards_(std::min<size_t>(slots_.size(), 2 * std::max(1u, std::thread::hardware_concurrency()))) {}

  size_t slots() const { return slots_.size(); }
  int caller(size_t slot) const { return static_cast<int>(slot / o_.window); }

  // Starts the clock. All other times count from here.
  void begin() {
    epoch_ = Clock::now();
    epoch_unix_ = since_1970();
  }

  // Says what a slot does next: call now, wait until wake, or end. For the slot's own use.
  Turn turn(size_t slot) {
    Slot& s = slots_[slot];
    const int64_t now = elapsed();
    if (stopped.load(std::memory_order_relaxed) || now >= until_) return Turn::over;
    int64_t start = now;
    if (o_.rate > 0) {
      start = due(slot);  // a caller that is late goes on at once, and its latency counts from then
      if (start >= until_ || (o_.calls > 0 && left_.load(std::memory_order_relaxed) <= 0)) return Turn::over;
      if (start > now) return Turn::wait;
      s.made++;
    }
    if (o_.calls > 0 && start >= from_ && left_.fetch_sub(1) <= 0) return Turn::over;
    s.start = start;
    return Turn::call;
  }

  // When a slot that waits asks for its turn again: when its call is due, or earlier to see whether the
  // load is over.
  Clock::time_point wake(size_t slot) const {
    return epoch_ + std::min(std::chrono::nanoseconds(due(slot)), std::chrono::nanoseconds(elapsed()) + kLongestWait);
  }

  // Waits for the end of the measurement. The last calls of an open loop may be due long before it.
  void wait_out() const {
    while (o_.calls == 0 && elapsed() < until_ && !stopped.load(std::memory_order_relaxed))
      std::this_thread::sleep_until(
          epoch_ + std::min(std::chrono::nanoseconds(until_), std::chrono::nanoseconds(elapsed()) + kLongestWait));
  }

  // Counts the call of a slot if it ended inside the measurement. For the slot's own use.
  void end(size_t slot, Outcome outcome, const std::string& error) {
    Slot& s = slots_[slot];
    const int64_t end = elapsed();
    if (o_.calls > 0 ? s.start < from_ : end < from_ || end > until_) return;
    s.last = end;
    switch (outcome) {
      case Outcome::right: {
        s.calls++;
        Shard& shard = shards_[slot % shards_.size()];
        std::lock_guard<std::mutex> lock(shard.mu);
        shard.histogram.record(end - s.start);
        break;
      }
      case Outcome::wrong:
        s.wrong++;
        break;
      case Outcome::error:
        if (s.errors++ == 0) s.first_error = error;
        break;
    }
  }

  // Returns the line that a client prints. All callers have ended.
  std::string result() const {
    int64_t calls = 0, errors = 0, wrong = 0, last = from_;
    std::string first_error;
    for (const Slot& s : slots_) {
      calls += s.calls, errors += s.errors, wrong += s.wrong;
      if (first_error.empty()) first_error = s.first_error;
      last = std::max(last, s.last);
    }
    Histogram all;
    for (const Shard& s : shards_) all.merge(s.histogram);
    const auto number = [](int64_t n) { return std::to_string(n); };
    return "{\"contract\":1,\"calls\":" + number(calls) + ",\"errors\":" + number(errors) +
           ",\"wrong\":" + number(wrong) + ",\"first_error\":\"" + escape(first_error) +
           "\",\"began_unix_ns\":" + number(epoch_unix_ + from_) +
           ",\"ended_unix_ns\":" + number(epoch_unix_ + (o_.calls > 0 ? last : until_)) + ",\"hdr\":\"" +
           all.encode() + "\"}\n";
  }

 private:
  // One of a few histograms. One for each caller would be 200 KiB each.
  struct alignas(128) Shard {
    std::mutex mu;  // guards histogram
    Histogram histogram;
  };

  // At most 30 years, which is never here and does not overflow.
  static int64_t nanoseconds(double seconds) { return static_cast<int64_t>(std::min(seconds, 1e9) * 1e9); }

  static int64_t since_1970() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  // When the next call of a slot is due. From its number and not from the last one's time, so that no
  // rounding adds up.
  int64_t due(size_t slot) const { return nanoseconds((slots_[slot].made * slots_.size() + slot) / o_.rate); }

  int64_t elapsed() const { return std::chrono::nanoseconds(Clock::now() - epoch_).count(); }

  // Escapes what may not stand in a string of JSON. What is not printable ASCII becomes a question
  // mark: errors of a library can quote a peer's bytes.
  static std::string escape(const std::string& text) {
    std::string out;
    for (const unsigned char c : text) {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(c < ' ' || c >= 0x7f ? '?' : static_cast<char>(c));
    }
    return out;
  }

  const ClientOptions o_;
  const int64_t from_, until_;  // of the measurement; far away where calls are counted
  std::atomic<int64_t> left_;   // calls, where they are counted
  Clock::time_point epoch_;
  int64_t epoch_unix_ = 0;
  std::vector<Slot> slots_;
  std::vector<Shard> shards_;
};

}  // namespace arena
