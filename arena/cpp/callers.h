// The two kinds of callers: threads, for a framework whose calls block, and state machines, for one
// whose calls end in a callback or an event.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "load.h"
#include "timer.h"

namespace arena {

// Makes a call and returns whether the reply is the right one. It throws where the call fails.
using Call = std::function<bool()>;

// Calls from one thread for each slot and returns when all have ended. open is called once for each
// slot, with its caller, and is not called concurrently.
inline void run_threads(Load& load, const std::function<Call(int caller)>& open) {
  std::vector<Call> calls;
  for (size_t i = 0; i < load.slots(); i++) calls.push_back(open(load.caller(i)));
  load.begin();
  const auto caller = [&load](size_t i, const Call& call) {
    for (;;) {
      switch (load.turn(i)) {
        case Load::Turn::over:
          return;
        case Load::Turn::wait:
          std::this_thread::sleep_until(load.wake(i));
          continue;
        case Load::Turn::call:
          break;
      }
      try {
        const bool right = call();
        load.end(i, right ? Outcome::right : Outcome::wrong, "");
      } catch (const std::exception& e) {
        load.end(i, Outcome::error, e.what());
        std::this_thread::sleep_for(Load::kErrorPause);
      }
    }
  };
  std::vector<std::thread> threads;
  std::exception_ptr failed;
  try {
    for (size_t i = 0; i < calls.size(); i++) threads.emplace_back(caller, i, std::cref(calls[i]));
  } catch (...) {
    failed = std::current_exception();  // no thread can be had: those that run end first
    stopped = true;
  }
  for (std::thread& t : threads) t.join();
  if (failed) std::rethrow_exception(failed);
  load.wait_out();
}

// StateMachines are callers without a thread each. start begins the call of a slot and sees to it that
// done is called once when it has ended, from any thread, but not from within start.
class StateMachines {
 public:
  using Start = std::function<void(size_t slot)>;

  explicit StateMachines(Load& load) : load_(load), running_(load.slots()) {}

  // Calls from all slots and returns when all have ended.
  void run(Start start) {
    start_ = std::move(start);
    load_.begin();
    for (size_t i = 0; i < load_.slots(); i++) next(i);
    std::unique_lock<std::mutex> lock(mu_);
    ended_.wait(lock, [this] { return running_ == 0; });
    load_.wait_out();
  }

  // Ends the call of a slot and goes on with its next one. Safe for concurrent use.
  void done(size_t slot, Outcome outcome, const std::string& error = "") {
    load_.end(slot, outcome, error);
    if (outcome == Outcome::error) {
      timer_.at(Timer::Clock::now() + Load::kErrorPause, [this, slot] { next(slot); });
      return;
    }
    next(slot);
  }

 private:
  void next(size_t slot) {
    switch (load_.turn(slot)) {
      case Load::Turn::call:
        start_(slot);
        break;
      case Load::Turn::wait:
        timer_.at(load_.wake(slot), [this, slot] { next(slot); });
        break;
      case Load::Turn::over: {
        // Notified under the lock: run may return, and its caller destroy this, as soon as it is free.
        std::lock_guard<std::mutex> lock(mu_);
        if (--running_ == 0) ended_.notify_one();
        break;
      }
    }
  }

  Load& load_;
  Start start_;
  std::mutex mu_;  // guards running_
  std::condition_variable ended_;
  size_t running_;  // slots that have not ended
  Timer timer_;     // the last member: its thread uses the others
};

}  // namespace arena
