// What both servers are built with.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <stdexcept>

#include "cpp/options.h"

namespace arena {

inline std::unique_ptr<grpc::Server> listen(grpc::ServerBuilder& builder, const ServerOptions& o) {
  // Without it a second server on the port would take half of the connections instead of failing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  int port = 0;
  builder.AddListeningPort(o.addr.text, grpc::InsecureServerCredentials(), &port);
  auto server = builder.BuildAndStart();
  if (!server || port == 0) throw std::runtime_error("listen on " + o.addr.text + ": is another server there?");
  return server;
}

// Ends the server. Calls that are under way have a second.
inline void stop(grpc::Server& server) { server.Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1)); }

}  // namespace arena
