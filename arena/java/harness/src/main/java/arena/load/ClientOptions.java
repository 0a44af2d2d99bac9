package arena.load;

import java.util.List;

/**
 * The flags of a client program.
 *
 * @param conns connections that the callers share, in all; 0: one for each caller
 * @param calls measured calls instead of measured seconds; 0: seconds
 */
public record ClientOptions(
    List<Address> addresses,
    String workload,
    int callers,
    int conns,
    boolean fresh,
    int window,
    double rate,
    long warmupNanos,
    long measuredNanos,
    int calls,
    int payload) {

  static ClientOptions of(Flags flags) throws UsageException {
    ClientOptions o =
        new ClientOptions(
            Address.parseAll(flags.text("addr")),
            flags.text("workload"),
            flags.number("callers", 1),
            flags.number("conns", 0),
            flags.bool("fresh"),
            flags.number("window", 1),
            flags.decimal("rate"),
            (long) (flags.decimal("warmup") * 1e9),
            (long) (flags.decimal("seconds") * 1e9),
            flags.number("calls", 0),
            flags.number("payload", 0));
    if (!o.workload.equals("say") && !o.workload.equals("add")) {
      throw new UsageException("--workload " + o.workload + ": say or add");
    }
    if (o.payload != Payload.STANDARD) {
      Payload.field9(o.payload); // refuses a size that no message has
    }
    return o;
  }

  public boolean say() {
    return workload.equals("say");
  }

  /** Returns how many connections there are, where they are not fresh. */
  public int connections() {
    return conns == 0 ? callers : conns;
  }

  /** Returns the server of a connection or, where a caller has its own, of a caller. */
  public Address address(int conn) {
    return addresses.get(conn % addresses.size());
  }
}
