// The three servers of Thrift's C++ library that the peers are.
#pragma once

#include <thrift/Thrift.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TNonblockingServer.h>
#include <thrift/server/TSimpleServer.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TNonblockingServerSocket.h>
#include <thrift/transport/TServerSocket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "MathService.h"
#include "cpp/message.h"
#include "cpp/program.h"
#include "transport.h"

namespace arena {

class Handler : public idl::MathServiceIf {
 public:
  explicit Handler(const ServerOptions& o) : o_(o) {}

  void Say(idl::BenchmarkMessage& reply, const idl::BenchmarkMessage& request) override {
    delay();
    // The request is a local variable of the generated processor, not const there, and nothing reads it
    // after this call. Moving it saves a copy of 13 strings.
    reply = std::move(const_cast<idl::BenchmarkMessage&>(request));
    reply.field1 = kAnswerField1;
    reply.field2 = kAnswerField2;
  }

  int32_t Add(const int32_t a, const int32_t b) override {
    delay();
    return a + b;
  }

 private:
  void delay() {
    if (o_.sleep_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(o_.sleep_us));
    work(o_);
  }

  const ServerOptions o_;
};

class BufferFactory : public apache::thrift::transport::TTransportFactory {
 public:
  using Transport = apache::thrift::transport::TTransport;
  std::shared_ptr<Transport> getTransport(std::shared_ptr<Transport> socket) override {
    return std::make_shared<apache::thrift::transport::TBufferedTransport>(socket, kBufferBytes);
  }
};

// The generated code is instantiated for the transport that it reads from and writes to, which spares
// the virtual calls for each field.
template <class Transport>
using Processor = idl::MathServiceProcessorT<apache::thrift::protocol::TBinaryProtocolT<Transport>>;
template <class Transport>
using ProtocolFactory = apache::thrift::protocol::TBinaryProtocolFactoryT<Transport>;

inline std::shared_ptr<apache::thrift::server::TServer> new_server(const ServerOptions& o) {
  namespace server = apache::thrift::server;
  namespace transport = apache::thrift::transport;
  const auto handler = std::make_shared<Handler>(o);
  if (o.mode == "nonblocking") {
    using Memory = transport::TMemoryBuffer;
    const auto s = std::make_shared<server::TNonblockingServer>(
        std::make_shared<Processor<Memory>>(handler), std::make_shared<ProtocolFactory<Memory>>(),
        std::make_shared<transport::TNonblockingServerSocket>(o.addr.host, o.addr.port));
    // Handlers run on the threads that read, one for each core: a thread manager beside them costs two
    // switches a call.
    s->setNumIOThreads(std::max(1u, std::thread::hardware_concurrency()));
    return s;
  }
  using Buffered = transport::TBufferedTransport;
  const auto processor = std::make_shared<Processor<Buffered>>(handler);
  const auto socket = std::make_shared<transport::TServerSocket>(o.addr.host, o.addr.port);
  const auto buffers = std::make_shared<BufferFactory>();
  const auto protocols = std::make_shared<ProtocolFactory<Buffered>>();
  if (o.mode == "simple") return std::make_shared<server::TSimpleServer>(processor, socket, buffers, protocols);
  return std::make_shared<server::TThreadedServer>(processor, socket, buffers, protocols);
}

// Prints errors with the peer's name in front, where Thrift has the time, and leaves out the lines in
// which a TNonblockingServer tells of its start and its end.
inline void print_output(const char* what) {
  const std::string line = what;
  if (line.rfind("TNonblocking", 0) == 0)
    for (const char* told : {": Serving with ", ": using libevent ", " IO thread #"})
      if (line.find(told) != std::string::npos) return;
  print_error(line);
}

inline void serve(const ServerOptions& o, const std::function<void()>& wait_for_stop) {
  apache::thrift::GlobalOutput.setOutputFunction(print_output);
  const auto server = new_server(o);
  std::thread serving([&server] {
    try {
      server->serve();
    } catch (const std::exception& e) {
      print_error(e.what());
      _exit(1);
    }
  });
  wait_for_stop();
  server->stop();
  serving.join();
}

}  // namespace arena
