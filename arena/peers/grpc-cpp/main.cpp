// The peers grpc-cpp-callback and grpc-cpp-async.
#include <grpc/support/log.h>

#include "client.h"
#include "cpp/program.h"
#include "message.h"
#include "server_async.h"
#include "server_callback.h"

namespace {

void serve(const arena::ServerOptions& o, const std::function<void()>& wait_for_stop) {
  if (o.mode == "callback") {
    arena::serve_callback(o, wait_for_stop);
  } else {
    arena::serve_async(o, wait_for_stop);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // gRPC's own form has the time and the place in front instead of the peer's name.
  gpr_set_log_function([](gpr_log_func_args* args) { arena::print_error(args->message); });
  const arena::Program program{"grpc-cpp", {"callback", "async"}, serve, arena::call, arena::encoded};
  return arena::main_of(program, argc, argv);
}
