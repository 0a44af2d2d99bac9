// The callers of Thrift's C++ client, which blocks: each is a thread.
#pragma once

#include <thrift/Thrift.h>
#include <thrift/async/TConcurrentClientSyncInfo.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "MathService.h"
#include "cpp/callers.h"
#include "cpp/message.h"
#include "message.h"
#include "transport.h"

namespace arena {

// An open connection: frames for the non-blocking server, which needs them, and none for the others.
template <class Transport>
struct Connection {
  using Protocol = apache::thrift::protocol::TBinaryProtocolT<Transport>;
  using Own = idl::MathServiceClientT<Protocol>;
  using Shared = idl::MathServiceConcurrentClientT<Protocol>;

  explicit Connection(const Address& a) : socket(std::make_shared<apache::thrift::transport::TSocket>(a.host, a.port)) {
    namespace transport = apache::thrift::transport;
    auto stream = std::make_shared<transport::TBufferedTransport>(socket, kBufferBytes);
    std::shared_ptr<Transport> top;
    if constexpr (std::is_same_v<Transport, transport::TBufferedTransport>) {
      top = stream;
    } else {
      // Frames on top of a buffer: without it, the length and the rest of a frame are a read each.
      top = std::make_shared<Transport>(stream, kBufferBytes);
    }
    protocol = std::make_shared<Protocol>(top);
    try {
      socket->open();
    } catch (const std::exception& e) {
      throw std::runtime_error("connect to " + a.text + ": " + e.what());
    }
  }
  ~Connection() { socket->close(); }

  std::shared_ptr<apache::thrift::transport::TSocket> socket;
  std::shared_ptr<Protocol> protocol;
};

// What a caller calls with.
class Request {
 public:
  explicit Request(const ClientOptions& o) : add_(o.workload == "add") {
    if (!add_) message_ = new_message(o.payload);
  }

  // Makes one call and returns whether the reply is right.
  template <class Client>
  bool call(Client& client) {
    if (add_) {
      const int32_t a = number_++ % kAddModulus;
      return client.Add(a, kAddB) == a + kAddB;
    }
    idl::BenchmarkMessage reply;
    client.Say(reply, message_);
    return reply.field1 == kAnswerField1 && reply.field2 == kAnswerField2;
  }

 private:
  const bool add_;
  idl::BenchmarkMessage message_;
  int64_t number_ = 0;
};

// A caller with a connection of its own: one that it keeps, or one for each call.
template <class Transport>
class OwnCaller {
 public:
  OwnCaller(const ClientOptions& o, int conn) : o_(o), addr_(o.addr(conn)), request_(o) { connect(); }

  bool operator()() {
    if (!connection_) connect();  // fresh, or the last call failed
    try {
      const bool right = request_.call(*client_);
      if (o_.fresh) disconnect();
      return right;
    } catch (...) {
      disconnect();
      throw;
    }
  }

 private:
  void connect() {
    connection_ = std::make_unique<Connection<Transport>>(addr_);
    client_ = std::make_unique<typename Connection<Transport>::Own>(connection_->protocol);
  }
  void disconnect() {
    client_.reset();
    connection_.reset();
  }

  const ClientOptions& o_;
  const Address& addr_;
  Request request_;
  std::unique_ptr<Connection<Transport>> connection_;
  std::unique_ptr<typename Connection<Transport>::Own> client_;
};

// A connection that several callers share by Thrift's concurrent client: their requests go out one
// after another, and the caller that reads hands the replies to those that they are for.
template <class Transport>
class SharedConnection {
 public:
  struct Opened {
    explicit Opened(const Address& a)
        : connection(a), client(connection.protocol, std::make_shared<apache::thrift::async::TConcurrentClientSyncInfo>()) {}
    Connection<Transport> connection;
    typename Connection<Transport>::Shared client;
  };

  explicit SharedConnection(const Address& a) : addr_(a), opened_(std::make_shared<Opened>(a)) {}

  std::shared_ptr<Opened> get() {
    std::lock_guard<std::mutex> lock(mu_);
    return opened_;
  }

  // Returns another connection than one that failed; the first caller that asks opens it.
  std::shared_ptr<Opened> instead_of(const std::shared_ptr<Opened>& failed) {
    std::lock_guard<std::mutex> lock(mu_);
    if (opened_ == failed) opened_ = std::make_shared<Opened>(addr_);
    return opened_;
  }

 private:
  const Address& addr_;
  std::mutex mu_;  // guards opened_
  std::shared_ptr<Opened> opened_;
};

template <class Transport>
class SharedCaller {
 public:
  SharedCaller(const ClientOptions& o, SharedConnection<Transport>& shared)
      : shared_(shared), opened_(shared.get()), request_(o) {}

  bool operator()() {
    if (failed_) opened_ = shared_.instead_of(opened_);
    failed_ = true;
    const bool right = request_.call(opened_->client);
    failed_ = false;
    return right;
  }

 private:
  SharedConnection<Transport>& shared_;
  std::shared_ptr<typename SharedConnection<Transport>::Opened> opened_;
  Request request_;
  bool failed_ = false;
};

template <class Transport>
void call_own(const ClientOptions& o, Load& load) {
  run_threads(load, [&o](int caller) -> Call {
    return [c = std::make_shared<OwnCaller<Transport>>(o, caller)] { return (*c)(); };
  });
}

template <class Transport>
void call_shared(const ClientOptions& o, Load& load) {
  std::vector<std::unique_ptr<SharedConnection<Transport>>> shared;
  for (int i = 0; i < o.conns; i++) shared.push_back(std::make_unique<SharedConnection<Transport>>(o.addr(i)));
  run_threads(load, [&o, &shared](int caller) -> Call {
    return [c = std::make_shared<SharedCaller<Transport>>(o, *shared[caller % shared.size()])] { return (*c)(); };
  });
}

// How many bytes the callers of a connection may have under way. Thrift's concurrent client can wake a
// caller that is still writing to read a reply. Where the buffers of both sockets are full, it does not
// get to it: the server waits for somebody to read, and the client for the server. Linux gives a socket
// up to 4 MiB by default.
inline constexpr int64_t kMostShared = 2 << 20;

// Throws where the peer cannot do what is asked.
inline void check(const ClientOptions& o) {
  if (o.window > 1) throw UsageError("--window: Thrift's client has no asynchronous calls over TCP, use --window 1");
  if (o.mode == "shared") {
    if (o.conns == 0 || o.fresh) throw UsageError("this peer shares connections: use --conns 1 or more");
    const int64_t together = (o.callers + o.conns - 1) / o.conns;
    if (together > 1 && together * o.payload > kMostShared)
      throw UsageError("Thrift's concurrent client can hang with so many callers of such a payload on a connection: "
                       "use more connections, or the peer thrift-cpp-threaded");
    return;
  }
  if (!o.fresh && o.connections() < o.callers)
    throw UsageError("Thrift's client serves one caller: use --conns 0, or the peer thrift-cpp-shared");
  if (o.mode == "simple" && !o.fresh && o.callers > static_cast<int>(o.addrs.size()))
    throw UsageError("a TSimpleServer serves one connection at a time: use --callers 1 or --fresh");
}

inline void call(const ClientOptions& o, Load& load) {
  namespace transport = apache::thrift::transport;
  check(o);
  // All that Thrift would print reaches the callers as an exception too, and is counted there.
  apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});
  if (o.mode == "shared") {
    call_shared<transport::TBufferedTransport>(o, load);
  } else if (o.mode == "nonblocking") {
    call_own<transport::TFramedTransport>(o, load);
  } else {
    call_own<transport::TBufferedTransport>(o, load);
  }
}

}  // namespace arena
