package arena.load;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The flags of a server program. */
public record ServerOptions(Address address, long sleepNanos, long workNanos) {
  static ServerOptions of(Flags flags) throws UsageException {
    return new ServerOptions(
        Address.parse(flags.text("addr")),
        TimeUnit.MICROSECONDS.toNanos(flags.number("sleep-us", 0)),
        TimeUnit.MICROSECONDS.toNanos(flags.number("work-us", 0)));
  }

  /** Sleeps and works as long as the server was told to. A handler calls it before it answers. */
  public void delay() {
    if (sleepNanos > 0) {
      // Thread.sleep rounds up to milliseconds before Java 21.
      long end = System.nanoTime() + sleepNanos;
      for (long left = sleepNanos; left > 0; left = end - System.nanoTime()) {
        LockSupport.parkNanos(left);
      }
    }
    if (workNanos > 0) {
      long end = System.nanoTime() + workNanos;
      while (end - System.nanoTime() > 0) {
        // a core is busy
      }
    }
  }
}
