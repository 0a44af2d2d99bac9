// The server of the callback API: handlers run on the library's threads and end with a reactor.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/message_allocator.h>

#include <chrono>
#include <functional>

#include "benchmark.grpc.pb.h"
#include "cpp/timer.h"
#include "listen.h"
#include "math.grpc.pb.h"
#include "message.h"

namespace arena {

// One message for the request and the reply of say, which is the request with two fields changed. The
// API hands a handler a request that it must not change, and a reply that it would have to copy it to.
class SayMessages : public grpc::MessageAllocator<BenchmarkMessage, BenchmarkMessage> {
 public:
  grpc::MessageHolder<BenchmarkMessage, BenchmarkMessage>* AllocateMessages() override { return new Holder; }

 private:
  class Holder : public grpc::MessageHolder<BenchmarkMessage, BenchmarkMessage> {
   public:
    Holder() {
      auto* m = memory_.create<BenchmarkMessage>();
      set_request(m);
      set_response(m);
    }
    void Release() override { delete this; }

   private:
    MessageMemory memory_;
  };
};

// Ends calls, after the delays that the server was started with.
class Delay {
 public:
  explicit Delay(const ServerOptions& o) : o_(o) {}

  grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    work(o_);
    if (o_.sleep_us == 0) {
      reactor->Finish(grpc::Status::OK);
      return reactor;
    }
    // The API's way to wait: it has few threads, and one that sleeps serves nobody.
    timer_.at(Timer::Clock::now() + std::chrono::microseconds(o_.sleep_us),
              [reactor] { reactor->Finish(grpc::Status::OK); });
    return reactor;
  }

 private:
  const ServerOptions o_;
  Timer timer_;
};

class CallbackHello : public workload::Hello::CallbackService {
 public:
  explicit CallbackHello(Delay& delay) : delay_(delay) { SetMessageAllocatorFor_Say(&messages_); }

  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context, const BenchmarkMessage*,
                                BenchmarkMessage* reply) override {
    answer(*reply);  // it is the request, by SayMessages
    return delay_.finish(context);
  }

 private:
  Delay& delay_;
  SayMessages messages_;
};

class CallbackMath : public workload::MathService::CallbackService {
 public:
  explicit CallbackMath(Delay& delay) : delay_(delay) {}

  grpc::ServerUnaryReactor* Add(grpc::CallbackServerContext* context, const AddRequest* request,
                                AddReply* reply) override {
    reply->set_x(request->a() + request->b());
    return delay_.finish(context);
  }

 private:
  Delay& delay_;
};

inline void serve_callback(const ServerOptions& o, const std::function<void()>& wait_for_stop) {
  Delay delay(o);
  CallbackHello hello(delay);
  CallbackMath math(delay);
  grpc::ServerBuilder builder;
  builder.RegisterService(&hello);
  builder.RegisterService(&math);
  const auto server = listen(builder, o);
  wait_for_stop();
  stop(*server);
}

}  // namespace arena
