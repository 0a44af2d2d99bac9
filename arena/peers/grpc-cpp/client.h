// The callers of both clients: state machines, a call of each under way.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "benchmark.grpc.pb.h"
#include "connections.h"
#include "cpp/callers.h"
#include "math.grpc.pb.h"
#include "message.h"

namespace arena {

// What a call of each workload is.
struct SayCall {
  using Service = workload::Hello;
  using Reply = BenchmarkMessage;

  explicit SayCall(const ClientOptions& o) : request(new_message(o.payload)) {}
  void prepare() {}
  bool right(const Reply& reply) const { return is_right(reply); }
  auto begin(Service::Stub& stub, grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub.AsyncSay(context, request, queue);
  }
  template <class Done>
  void begin(Service::Stub& stub, grpc::ClientContext* context, Reply* reply, Done done) {
    stub.async()->Say(context, &request, reply, std::move(done));
  }

  BenchmarkMessage request;
};

struct AddCall {
  using Service = workload::MathService;
  using Reply = AddReply;

  explicit AddCall(const ClientOptions&) { request.set_b(kAddB); }
  void prepare() { request.set_a(static_cast<int>(number++ % kAddModulus)); }
  bool right(const Reply& reply) const { return reply.x() == request.a() + request.b(); }
  auto begin(Service::Stub& stub, grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub.AsyncAdd(context, request, queue);
  }
  template <class Done>
  void begin(Service::Stub& stub, grpc::ClientContext* context, Reply* reply, Done done) {
    stub.async()->Add(context, &request, reply, std::move(done));
  }

  AddRequest request;
  int64_t number = 0;
};

// A caller and its call under way.
template <class Call>
struct Caller {
  Caller(const ClientOptions& o, const Connections& c, size_t slot, int caller)
      : fresh(o.fresh), connections(c), slot(slot), number(caller), call(o) {
    if (!fresh) stub = Call::Service::NewStub(connections.of(number));
  }

  // Makes everything ready for the next call.
  void prepare() {
    if (fresh) stub = Call::Service::NewStub(connections.of(number));
    call.prepare();
    context.emplace();
    reply = memory.create<typename Call::Reply>();
  }

  // Ends the call, and starts the next one by that of machines.
  void end(StateMachines& machines, const grpc::Status& status) {
    Outcome outcome = Outcome::error;
    std::string error;
    if (status.ok()) {
      outcome = call.right(*reply) ? Outcome::right : Outcome::wrong;
    } else {
      error = "status " + std::to_string(status.error_code()) + ": " + status.error_message();
    }
    reader.reset();
    context.reset();
    memory.reset();
    if (fresh) stub.reset();
    machines.done(slot, outcome, error);
  }

  const bool fresh;
  const Connections& connections;
  const size_t slot;
  const int number;
  Call call;
  std::unique_ptr<typename Call::Service::Stub> stub;
  std::optional<grpc::ClientContext> context;
  MessageMemory memory;
  typename Call::Reply* reply = nullptr;
  // Of the completion queue's client.
  std::unique_ptr<grpc::ClientAsyncResponseReader<typename Call::Reply>> reader;
  grpc::Status status;
};

template <class Call>
std::vector<std::unique_ptr<Caller<Call>>> new_callers(const ClientOptions& o, const Connections& c, Load& load) {
  std::vector<std::unique_ptr<Caller<Call>>> callers;
  for (size_t i = 0; i < load.slots(); i++)
    callers.push_back(std::make_unique<Caller<Call>>(o, c, i, load.caller(i)));
  return callers;
}

// Makes one call by the callback API over a channel that stays open, and so keeps the library's threads
// for callbacks, which end with the last channel that used them. A fresh channel is closed on such a
// thread: it would wait for itself, and the next call would start new ones.
template <class Call>
void keep_threads(const ClientOptions& o, const Connections& connections) {
  Call call(o);
  const auto stub = Call::Service::NewStub(connections.lasting());
  grpc::ClientContext context;
  typename Call::Reply reply;
  std::promise<grpc::Status> ended;
  call.begin(*stub, &context, &reply, [&ended](grpc::Status status) { ended.set_value(status); });
  const grpc::Status status = ended.get_future().get();
  if (!status.ok()) throw std::runtime_error("call " + o.addr(0).text + ": " + status.error_message());
}

// Calls by the callback API: replies arrive on the library's threads.
template <class Call>
void call_callback(const ClientOptions& o, Load& load) {
  const Connections connections(o);
  if (o.fresh) keep_threads<Call>(o, connections);
  auto callers = new_callers<Call>(o, connections, load);
  StateMachines machines(load);
  machines.run([&](size_t slot) {
    Caller<Call>& c = *callers[slot];
    c.prepare();
    c.call.begin(*c.stub, &*c.context, c.reply, [&c, &machines](grpc::Status status) { c.end(machines, status); });
  });
}

// Calls by completion queues, a thread each. The callers of a connection use the same queue, so that
// one thread polls the connection.
template <class Call>
void call_async(const ClientOptions& o, Load& load) {
  const Connections connections(o);
  auto callers = new_callers<Call>(o, connections, load);
  StateMachines machines(load);
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<grpc::CompletionQueue> queues(std::min<size_t>(cores, o.fresh ? o.callers : o.connections()));
  std::vector<std::thread> threads;
  for (grpc::CompletionQueue& queue : queues) {
    threads.emplace_back([&queue, &machines] {
      void* tag;
      for (bool ok; queue.Next(&tag, &ok);) {
        auto* c = static_cast<Caller<Call>*>(tag);
        c->end(machines, c->status);
      }
    });
  }
  machines.run([&](size_t slot) {
    Caller<Call>& c = *callers[slot];
    c.prepare();
    c.reader = c.call.begin(*c.stub, &*c.context, &queues[connections.index(c.number) % queues.size()]);
    c.reader->Finish(c.reply, &c.status, &c);
  });
  for (grpc::CompletionQueue& queue : queues) queue.Shutdown();
  for (std::thread& t : threads) t.join();
}

inline void call(const ClientOptions& o, Load& load) {
  if (o.mode == "callback") {
    o.workload == "say" ? call_callback<SayCall>(o, load) : call_callback<AddCall>(o, load);
  } else {
    o.workload == "say" ? call_async<SayCall>(o, load) : call_async<AddCall>(o, load);
  }
}

}  // namespace arena
