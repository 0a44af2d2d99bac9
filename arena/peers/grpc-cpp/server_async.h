// The server of the asynchronous API: a completion queue and a thread for each core.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "benchmark.grpc.pb.h"
#include "cpp/timer.h"
#include "listen.h"
#include "math.grpc.pb.h"
#include "message.h"

namespace arena {

// What waits in a completion queue.
class Event {
 public:
  virtual ~Event() = default;
  virtual void happened(bool ok) = 0;
};

// What the calls of a server share.
struct AsyncServer {
  explicit AsyncServer(const ServerOptions& options) : o(options), timer(std::make_unique<Timer>()) {}

  const ServerOptions o;
  workload::Hello::AsyncService hello;
  workload::MathService::AsyncService math;
  std::unique_ptr<Timer> timer;
  std::atomic<bool> stopping{false};
};

// How the two methods are taken and answered.
struct SayMethod {
  using Request = BenchmarkMessage;
  using Reply = BenchmarkMessage;
  template <class... Args>
  static void take(AsyncServer& s, Args... args) {
    s.hello.RequestSay(args...);
  }
  // The request is the call's own, so it becomes the reply without a copy.
  static Reply* reply(Request* request, MessageMemory&) {
    answer(*request);
    return request;
  }
};

struct AddMethod {
  using Request = AddRequest;
  using Reply = AddReply;
  template <class... Args>
  static void take(AsyncServer& s, Args... args) {
    s.math.RequestAdd(args...);
  }
  static Reply* reply(Request* request, MessageMemory& memory) {
    auto* reply = memory.create<AddReply>();
    reply->set_x(request->a() + request->b());
    return reply;
  }
};

// A place for one call after another: it waits for one, answers it, and waits for the next.
template <class Method>
class AsyncCall : public Event {
 public:
  AsyncCall(AsyncServer& server, grpc::ServerCompletionQueue* queue) : server_(server), queue_(queue) { take(); }

  void happened(bool ok) override {
    if (answered_) {
      // Also where the client had gone: its call is over.
      if (!server_.stopping) take();
    } else if (ok) {
      answer_it();
    }  // otherwise the server ends, and no call comes any more
  }

 private:
  void take() {
    answered_ = false;
    responder_.reset();
    context_.reset();
    memory_.reset();
    request_ = memory_.create<typename Method::Request>();
    context_.emplace();
    responder_.emplace(&*context_);
    Method::take(server_, &*context_, request_, &*responder_, queue_, queue_, static_cast<Event*>(this));
  }

  void answer_it() {
    answered_ = true;
    work(server_.o);
    if (server_.o.sleep_us == 0) {
      finish();
      return;
    }
    // The API's way to wait: a queue's thread that sleeps serves nobody.
    server_.timer->at(Timer::Clock::now() + std::chrono::microseconds(server_.o.sleep_us), [this] { finish(); });
  }

  void finish() {
    const auto* reply = Method::reply(request_, memory_);
    responder_->Finish(*reply, grpc::Status::OK, static_cast<Event*>(this));
  }

  AsyncServer& server_;
  grpc::ServerCompletionQueue* queue_;
  bool answered_ = false;
  MessageMemory memory_;
  typename Method::Request* request_ = nullptr;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncResponseWriter<typename Method::Reply>> responder_;
};

// Ends a queue on the thread that reads it: nothing may be put into it after that, and only this thread
// takes new calls there.
class EndOfQueue : public Event {
 public:
  explicit EndOfQueue(grpc::ServerCompletionQueue* queue) : queue_(queue) {}

  void begin() { alarm_.Set(queue_, std::chrono::system_clock::now(), static_cast<Event*>(this)); }
  void happened(bool) override { queue_->Shutdown(); }

 private:
  grpc::ServerCompletionQueue* queue_;
  grpc::Alarm alarm_;
};

// Calls that wait for clients in each queue and method. Where none waits, a request is put aside under
// a lock of the whole server.
inline constexpr int kWaitingCalls = 256;

inline void serve_async(const ServerOptions& o, const std::function<void()>& wait_for_stop) {
  AsyncServer shared(o);
  grpc::ServerBuilder builder;
  builder.RegisterService(&shared.hello);
  builder.RegisterService(&shared.math);
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); i++)
    queues.push_back(builder.AddCompletionQueue());
  const auto server = listen(builder, o);

  std::vector<std::unique_ptr<Event>> calls;
  std::vector<std::thread> threads;
  for (const auto& queue : queues) {
    for (int i = 0; i < kWaitingCalls; i++) {
      calls.push_back(std::make_unique<AsyncCall<SayMethod>>(shared, queue.get()));
      calls.push_back(std::make_unique<AsyncCall<AddMethod>>(shared, queue.get()));
    }
    threads.emplace_back([&queue] {
      void* tag;
      for (bool ok; queue->Next(&tag, &ok);) static_cast<Event*>(tag)->happened(ok);
    });
  }
  wait_for_stop();
  shared.stopping = true;
  stop(*server);
  shared.timer.reset();  // calls that still sleep were cancelled
  std::vector<std::unique_ptr<EndOfQueue>> ends;
  for (const auto& queue : queues) {
    ends.push_back(std::make_unique<EndOfQueue>(queue.get()));
    ends.back()->begin();
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace arena
