// Timer runs functions at their time, on one thread of its own: callers that wait for their moment, and
// handlers that sleep without holding a thread of their framework.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace arena {

class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  Timer() : thread_([this] { loop(); }) {}

  // Waits for the function that is running and drops those that are left.
  ~Timer() {
    {
      std::lock_guard<std::mutex> lock(mu_);
      over_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  // Runs f at that time, or soon where it has passed. Safe for concurrent use; f must not block.
  void at(Clock::time_point when, std::function<void()> f) {
    bool first;
    {
      std::lock_guard<std::mutex> lock(mu_);
      queue_.push(Entry{when, order_++, std::move(f)});
      first = queue_.top().when == when;
    }
    if (first) wake_.notify_one();
  }

 private:
  struct Entry {
    Clock::time_point when;
    uint64_t order;  // first come, first served at the same time
    std::function<void()> f;
    bool operator<(const Entry& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  void loop() {
    std::unique_lock<std::mutex> lock(mu_);
    while (!over_) {
      if (queue_.empty()) {
        wake_.wait(lock);
      } else if (Clock::now() < queue_.top().when) {
        const Clock::time_point when = queue_.top().when;  // a copy: the entry moves while we wait
        wake_.wait_until(lock, when);
      } else {
        // top() is const so that nobody breaks the order; the entry is gone with the next line.
        std::function<void()> f = std::move(const_cast<Entry&>(queue_.top()).f);
        queue_.pop();
        lock.unlock();
        f();
        lock.lock();
      }
    }
  }

  std::mutex mu_;  // guards queue_, order_ and over_
  std::condition_variable wake_;
  std::priority_queue<Entry> queue_;
  uint64_t order_ = 0;
  bool over_ = false;
  std::thread thread_;  // the last member: it uses the others from its start
};

}  // namespace arena
