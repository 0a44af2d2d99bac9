// The command lines of CONTRACT.md.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace arena {

// A command line that is not one of the contract. The program ends with exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Address {
  std::string host;
  int port = 0;
  std::string text;  // as it was given
};

struct ServerOptions {
  std::string mode;  // which of the program's peers it is
  Address addr;
  int64_t sleep_us = 0;
  int64_t work_us = 0;
};

struct ClientOptions {
  std::string mode;  // which of the program's peers it is
  std::vector<Address> addrs;
  std::string workload = "say";
  int callers = 1;
  int conns = 1;  // 0: one for each caller
  bool fresh = false;
  int window = 1;
  double rate = 0;  // calls/s of all callers, 0: closed loop
  double warmup_s = 1;
  double seconds = 5;
  int64_t calls = 0;  // instead of seconds
  int payload = 581;

  // How many connections the callers share, or how many they have.
  int connections() const { return conns == 0 ? callers : conns; }
  // The server of a connection or, where a caller has its own, of a caller.
  const Address& addr(int conn) const { return addrs[conn % addrs.size()]; }
};

// Flags parses --name value, --name=value and, for switches, --name alone.
class Flags {
 public:
  void add(const std::string& name, std::string* to) {
    values_[name] = [to](const std::string& v) { *to = v; };
  }
  void add(const std::string& name, bool* to) {
    switches_[name] = to;
  }
  template <class Number>
  void add(const std::string& name, Number* to) {
    values_[name] = [name, to](const std::string& v) {
      size_t used = 0;
      double number = 0;
      try {
        number = std::stod(v, &used);
      } catch (const std::exception&) {
        used = 0;
      }
      if (used == 0 || used != v.size()) throw UsageError("--" + name + " " + v + ": give a number");
      // Also false for what is not a number; a cast of what does not fit would be undefined.
      if (!(number >= 0 && number < static_cast<double>(std::numeric_limits<Number>::max())))
        throw UsageError("--" + name + " " + v + ": out of range, nothing is negative");
      *to = static_cast<Number>(number);
      if (static_cast<double>(*to) != number) throw UsageError("--" + name + " " + v + ": give a whole number");
    };
  }

  void parse(const std::vector<std::string>& args) const {
    for (size_t i = 0; i < args.size(); i++) {
      const size_t dashes = args[i].rfind("--", 0) == 0 ? 2 : args[i].rfind("-", 0) == 0 ? 1 : 0;
      if (dashes == 0) throw UsageError("argument \"" + args[i] + "\": flags only");
      const size_t equals = args[i].find('=');
      const std::string name = args[i].substr(dashes, equals == std::string::npos ? equals : equals - dashes);
      if (auto s = switches_.find(name); s != switches_.end()) {
        const std::string v = equals == std::string::npos ? "true" : args[i].substr(equals + 1);
        if (v != "true" && v != "false") throw UsageError("--" + name + "=" + v + ": true or false");
        *s->second = v == "true";
        continue;
      }
      const auto f = values_.find(name);
      if (f == values_.end()) throw UsageError("flag \"" + args[i] + "\" is unknown");
      if (equals != std::string::npos) {
        f->second(args[i].substr(equals + 1));
      } else {
        if (++i == args.size()) throw UsageError("--" + name + ": give a value");
        f->second(args[i]);
      }
    }
  }

 private:
  std::map<std::string, std::function<void(const std::string&)>> values_;
  std::map<std::string, bool*> switches_;
};

inline Address parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  Address a;
  a.text = text;
  if (colon != std::string::npos) {
    a.host = text.substr(0, colon);
    if (a.host.size() > 2 && a.host.front() == '[' && a.host.back() == ']') a.host = a.host.substr(1, a.host.size() - 2);
    a.port = std::atoi(text.c_str() + colon + 1);
  }
  if (a.host.empty() || a.port < 1 || a.port > 65535) throw UsageError("--addr \"" + text + "\": use host:port");
  return a;
}

inline ServerOptions parse_server(const std::vector<std::string>& args) {
  ServerOptions o;
  std::string addr;
  Flags f;
  f.add("mode", &o.mode);
  f.add("addr", &addr);
  f.add("sleep-us", &o.sleep_us);
  f.add("work-us", &o.work_us);
  f.parse(args);
  o.addr = parse_address(addr);
  return o;
}

inline ClientOptions parse_client(const std::vector<std::string>& args) {
  ClientOptions o;
  std::string addrs;
  Flags f;
  f.add("mode", &o.mode);
  f.add("addr", &addrs);
  f.add("workload", &o.workload);
  f.add("callers", &o.callers);
  f.add("conns", &o.conns);
  f.add("fresh", &o.fresh);
  f.add("window", &o.window);
  f.add("rate", &o.rate);
  f.add("warmup", &o.warmup_s);
  f.add("seconds", &o.seconds);
  f.add("calls", &o.calls);
  f.add("payload", &o.payload);
  f.parse(args);
  for (size_t from = 0, comma = 0; comma != std::string::npos; from = comma + 1) {
    comma = addrs.find(',', from);
    o.addrs.push_back(parse_address(addrs.substr(from, comma == std::string::npos ? comma : comma - from)));
  }
  if (o.workload != "say" && o.workload != "add")
    throw UsageError("--workload " + o.workload + ": say or add");
  if (o.callers < 1 || o.window < 1) throw UsageError("--callers and --window are at least 1");
  return o;
}

}  // namespace arena
