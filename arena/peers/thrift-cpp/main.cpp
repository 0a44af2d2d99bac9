// The peers thrift-cpp-simple, thrift-cpp-threaded, thrift-cpp-nonblocking and thrift-cpp-shared.
#include "client.h"
#include "cpp/program.h"
#include "message.h"
#include "server.h"

int main(int argc, char** argv) {
  const arena::Program program{
      "thrift-cpp",
      {"simple", "threaded", "nonblocking", "shared"},
      arena::serve,
      arena::call,
      [](int payload) { return arena::protobuf_bytes(arena::new_message(payload)); },
  };
  return arena::main_of(program, argc, argv);
}
