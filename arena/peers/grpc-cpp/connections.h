// The connections of a client: a channel of gRPC's each, which is connected before the calls begin.
#pragma once

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpp/options.h"

namespace arena {

inline std::shared_ptr<grpc::Channel> new_channel(const Address& a) {
  grpc::ChannelArguments args;
  // Channels of equal arguments share one connection otherwise.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Retries are off: without a policy they never happen, and their filter costs each call something.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetMaxReceiveMessageSize(-1);
  in_addr parsed;
  // The scheme of an address spares the resolver of names, which counts for a connection for each call.
  const std::string scheme = inet_pton(AF_INET, a.host.c_str(), &parsed) == 1 ? "ipv4:" : "dns:///";
  return grpc::CreateCustomChannel(scheme + a.text, grpc::InsecureChannelCredentials(), args);
}

// The channels that callers share or have. With --fresh there is one for each server, to see that it is
// there.
class Connections {
 public:
  explicit Connections(const ClientOptions& o) : o_(o) {
    const int count = o.fresh ? static_cast<int>(o.addrs.size()) : o.connections();
    for (int i = 0; i < count; i++) channels_.push_back(new_channel(o.addr(i)));
    for (const auto& c : channels_) c->GetState(true);  // all connect at once
    const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(10);
    for (int i = 0; i < count; i++)
      if (!channels_[i]->WaitForConnected(deadline))
        throw std::runtime_error("connect to " + o.addr(i).text + ": no answer: is the server running?");
  }

  // Which connection is a caller's.
  size_t index(int caller) const { return o_.fresh ? caller : caller % channels_.size(); }

  // Returns a channel that stays open, with --fresh too.
  std::shared_ptr<grpc::Channel> lasting() const { return channels_.front(); }

  // Returns the channel of a caller's next call.
  std::shared_ptr<grpc::Channel> of(int caller) const {
    return o_.fresh ? new_channel(o_.addr(caller)) : channels_[index(caller)];
  }

 private:
  const ClientOptions& o_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace arena
