// A peer whose calls go nowhere, to see what the harness makes of their outcomes. The mode says how they
// end: after a millisecond, wrong, with an error, or stalled for a fifth of a second at the tenth call.
#include "cpp/program.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "cpp/callers.h"
#include "cpp/message.h"
#include "cpp/timer.h"

namespace {

using std::chrono::milliseconds;

void call(const arena::ClientOptions& o, arena::Load& load) {
  if (o.mode == "machines" || o.mode == "failing-machines") {
    arena::Timer timer;
    arena::StateMachines machines(load);
    const auto outcome = o.mode == "machines" ? arena::Outcome::right : arena::Outcome::error;
    machines.run([&](size_t slot) {
      timer.at(arena::Timer::Clock::now() + milliseconds(1),
               [&machines, slot, outcome] { machines.done(slot, outcome, "refused"); });
    });
    return;
  }
  std::atomic<int> calls{0};
  arena::run_threads(load, [&](int) -> arena::Call {
    return [&] {
      if (o.mode == "failing") throw std::runtime_error("no \"answer\"\n\\ \xff");
      std::this_thread::sleep_for(milliseconds(o.mode == "stalling" && ++calls == 10 ? 200 : 1));
      return o.mode != "wrong";
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  const arena::Program program{
      "test",
      {"threads", "machines", "wrong", "failing", "failing-machines", "stalling"},
      [](const arena::ServerOptions&, const std::function<void()>& wait_for_stop) { wait_for_stop(); },
      call,
      [](int payload) { return std::string(arena::padding(payload), 'x'); },
  };
  return arena::main_of(program, argc, argv);
}
