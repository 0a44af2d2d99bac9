// The main function of a peer's program: its first argument is server, client or selftest.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "load.h"
#include "options.h"

namespace arena {

struct Program {
  std::string name;                // of the peers it is, before the dash and the mode
  std::vector<std::string> modes;  // the program is one peer for each
  // Serves until stop is called, which blocks until a signal came. Throws where it cannot serve.
  std::function<void(const ServerOptions&, const std::function<void()>& wait_for_stop)> serve;
  // Opens the connections and makes the load's calls.
  std::function<void(const ClientOptions&, Load&)> call;
  // Returns the bytes as protobuf of what a client sends for a payload of so many bytes.
  std::function<std::string(int payload)> message;
};

// The peer's name, for errors. Set once the command line is read.
inline std::string peer_name;

inline void print_error(const std::string& what) { fprintf(stderr, "%s: %s\n", peer_name.c_str(), what.c_str()); }

// Compares the message with the golden files that the peers in all languages share.
inline void selftest(const Program& p, const std::string& testdata) {
  for (const int payload : {581, 64}) {
    const std::string path = testdata + "/say" + std::to_string(payload) + ".bin";
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + " cannot be read: give the folder of the golden files");
    const std::string want{std::istreambuf_iterator<char>(file), {}};
    const std::string got = p.message(payload);
    if (got != want)
      throw std::runtime_error("the message of " + std::to_string(payload) + " bytes has " +
                               std::to_string(got.size()) + " and is not that of " + path);
  }
}

inline void set_mode(const Program& p, const std::string& mode) {
  std::string all;
  for (const std::string& m : p.modes) {
    if (m == mode) {
      peer_name = p.name + "-" + mode;
      return;
    }
    all += (all.empty() ? "" : ", ") + m;
  }
  throw UsageError("--mode \"" + mode + "\": one of " + all);
}

inline void run_client(const Program& p, const std::vector<std::string>& args, const sigset_t& signals) {
  const ClientOptions o = parse_client(args);
  set_mode(p, o.mode);
  std::thread([signals] {
    int which;
    sigwait(&signals, &which);
    stopped = true;
    // Callers end with their calls. One that hangs must not keep the program.
    std::this_thread::sleep_for(std::chrono::seconds(3));
    print_error("interrupted, and the calls under way do not end");
    _exit(1);
  }).detach();
  Load load(o);
  p.call(o, load);
  if (stopped) throw std::runtime_error("interrupted");
  const std::string line = load.result();
  if (fwrite(line.data(), 1, line.size(), stdout) != line.size() || fflush(stdout) != 0)
    throw std::runtime_error("the result cannot be written to the standard output");
}

inline void run_server(const Program& p, const std::vector<std::string>& args, const sigset_t& signals) {
  const ServerOptions o = parse_server(args);
  set_mode(p, o.mode);
  p.serve(o, [signals] {
    int which;
    sigwait(&signals, &which);
    // A peer that does not stop in time is ended: nothing is left to lose.
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      _exit(0);
    }).detach();
  });
}

// Runs the program and returns its exit code.
inline int main_of(const Program& p, int argc, char** argv) {
  peer_name = p.name;
  // Before any thread starts, so that all inherit it and only sigwait gets these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  try {
    const std::string kind = argc > 1 ? argv[1] : "";
    const std::vector<std::string> args(argv + std::min(argc, 2), argv + argc);
    if (kind == "server") {
      run_server(p, args, signals);
    } else if (kind == "client") {
      run_client(p, args, signals);
    } else if (kind == "selftest" && args.size() == 1) {
      selftest(p, args[0]);
    } else {
      throw UsageError("use " + p.name + " server|client --mode M --addr host:port [flags], or selftest FOLDER");
    }
  } catch (const UsageError& e) {
    print_error(e.what());
    return 2;
  } catch (const std::exception& e) {
    print_error(e.what());
    return 1;
  }
  return 0;
}

}  // namespace arena
