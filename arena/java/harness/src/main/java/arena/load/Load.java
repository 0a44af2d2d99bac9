package arena.load;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import org.HdrHistogram.Histogram;

/** A load while it runs. All times are nanoseconds since its epoch. */
final class Load {
  // The histogram of the contract.
  private static final long LEAST = 1;
  private static final long MOST = TimeUnit.SECONDS.toNanos(60);
  private static final int DIGITS = 3;

  /** Keeps a caller from spinning on a dead server. */
  private static final long ERROR_PAUSE = TimeUnit.MILLISECONDS.toNanos(10);

  private final ClientOptions o;
  private final int lanes; // callers, or the calls that they keep in flight
  private final long epoch = System.nanoTime();
  private final Instant began = Instant.now();
  private final long from; // of the measurement
  private final long until; // of the measurement; far away where calls are counted
  private final AtomicLong left; // calls, where they are counted
  private final CountDownLatch running;
  private final Histogram[] shards; // each is guarded by its own monitor
  private final List<Tally> tallies = new ArrayList<>(); // guarded by its own monitor

  private Load(ClientOptions o) {
    this.o = o;
    lanes = o.callers() * o.window();
    from = o.warmupNanos();
    until = o.calls() > 0 ? Long.MAX_VALUE : from + o.measuredNanos();
    left = new AtomicLong(o.calls());
    running = new CountDownLatch(lanes);
    // A few, and not one for each caller: a large heap makes the garbage collector's work look smaller than it is.
    shards = new Histogram[Math.min(lanes, 2 * Runtime.getRuntime().availableProcessors())];
    for (int i = 0; i < shards.length; i++) {
      shards[i] = new Histogram(LEAST, MOST, DIGITS);
    }
  }

  /** Calls from all callers and returns what they saw. */
  static Result run(ClientOptions o, IntFunction<Caller> callers) throws InterruptedException {
    Load load = new Load(o);
    // Two threads, so that one that starts calls is not what an open loop waits for.
    AtomicInteger number = new AtomicInteger();
    ScheduledExecutorService timer =
        Executors.newScheduledThreadPool(
            2,
            r -> {
              Thread t = new Thread(r, "timer-" + number.getAndIncrement());
              t.setDaemon(true);
              return t;
            });
    for (int i = 0; i < load.lanes; i++) {
      Caller caller = callers.apply(i / o.window());
      int lane = i;
      if (caller instanceof Caller.Blocking blocking) {
        Thread thread = new Thread(() -> load.new Lane(lane).block(blocking), "caller-" + i);
        thread.setDaemon(true);
        thread.start();
      } else if (caller instanceof Caller.Async async) {
        // On a timer's thread, as the calls after an error: the first ones may take long, to load classes.
        timer.execute(load.new Chain(lane, async, timer));
      }
    }
    load.running.await();
    timer.shutdownNow();
    return load.result();
  }

  private long now() {
    return System.nanoTime() - epoch;
  }

  private Result result() {
    long calls = 0;
    long errors = 0;
    long wrong = 0;
    long last = 0;
    String first = "";
    synchronized (tallies) {
      for (Tally t : tallies) {
        calls += t.calls;
        errors += t.errors;
        wrong += t.wrong;
        last = Math.max(last, t.last);
        if (first.isEmpty() && t.first != null) {
          first = t.first.toString();
        }
      }
    }
    Histogram all = new Histogram(LEAST, MOST, DIGITS);
    for (Histogram shard : shards) {
      synchronized (shard) {
        all.add(shard);
      }
    }
    long end = o.calls() > 0 ? last : until;
    return new Result(calls, errors, wrong, first, unixNanos(from), unixNanos(end), all);
  }

  private long unixNanos(long time) {
    Instant at = began.plusNanos(time);
    return TimeUnit.SECONDS.toNanos(at.getEpochSecond()) + at.getNano();
  }

  /** What one lane has seen. Only that lane writes it, on one thread at a time. */
  private static final class Tally {
    long calls;
    long errors;
    long wrong;
    long last; // end of the last measured call
    Throwable first;
  }

  /** One caller, or one of the calls that it keeps in flight. */
  private class Lane {
    private final Histogram shard;
    private final Tally tally = new Tally(); // by the thread that uses it, which keeps two of them off a cache line
    private final long each; // from one call to the next, with a rate
    private long due; // when the next call is

    Lane(int lane) {
      shard = shards[lane % shards.length];
      each = o.rate() > 0 ? (long) (lanes / o.rate() * 1e9) : 0;
      due = o.rate() > 0 ? (long) (lane / o.rate() * 1e9) : 0;
      synchronized (tallies) {
        tallies.add(tally);
      }
    }

    /** Returns how long the next call has to wait. */
    final long early() {
      return each > 0 ? due - now() : 0;
    }

    /** Returns when the next call, which is not early, starts; less than 0 after the last one. */
    final long next() {
      long start = now();
      if (each > 0) {
        start = due;
        due += each;
      }
      boolean over = start >= until || o.calls() > 0 && start >= from && left.decrementAndGet() < 0;
      return over ? -1 : start;
    }

    /** Enters a call that ended inside the measurement. */
    final void count(long start, Throwable failed) {
      long end = now();
      boolean counted = o.calls() > 0;
      if (counted ? start < from : end < from || end > until) {
        return;
      }
      tally.last = end;
      if (failed == null) {
        tally.calls++;
        long latency = Math.min(Math.max(end - start, LEAST), MOST);
        synchronized (shard) {
          shard.recordValue(latency);
        }
      } else if (failed instanceof WrongReply) {
        tally.wrong++;
      } else {
        tally.errors++;
        if (tally.first == null) {
          tally.first = failed;
        }
      }
    }

    final void block(Caller.Blocking caller) {
      try {
        while (true) {
          for (long early = early(); early > 0; early = early()) {
            LockSupport.parkNanos(early); // Thread.sleep rounds up to milliseconds before Java 21
          }
          long start = next();
          if (start < 0) {
            return;
          }
          Throwable failed = null;
          try {
            caller.call();
          } catch (Throwable e) {
            failed = e;
          }
          count(start, failed);
          if (pauses(failed)) {
            LockSupport.parkNanos(ERROR_PAUSE);
          }
        }
      } finally {
        running.countDown();
      }
    }
  }

  private static boolean pauses(Throwable failed) {
    return failed != null && !(failed instanceof WrongReply);
  }

  /** A lane of an asynchronous caller: the end of a call starts the next one. */
  private final class Chain extends Lane implements Runnable, Caller.Done {
    private static final int STARTING = 0; // run is in start
    private static final int FLYING = 1; // run has returned: the end of the call goes on
    private static final int ENDED = 2; // the call ended before start returned: run goes on

    private final Caller.Async caller;
    private final ScheduledExecutorService timer;
    private final AtomicInteger state = new AtomicInteger();
    private long start;
    private boolean pause;

    Chain(int lane, Caller.Async caller, ScheduledExecutorService timer) {
      super(lane);
      this.caller = caller;
      this.timer = timer;
    }

    /** Starts calls until one is in flight. A call that ends while it is started must not recurse. */
    @Override
    public void run() {
      do {
        if (pause) {
          pause = false;
          timer.schedule(this, ERROR_PAUSE, TimeUnit.NANOSECONDS);
          return;
        }
        long early = early();
        if (early > 0) {
          timer.schedule(this, early, TimeUnit.NANOSECONDS);
          return;
        }
        start = next();
        if (start < 0) {
          running.countDown();
          return;
        }
        state.set(STARTING);
        try {
          caller.start(this);
        } catch (Throwable e) {
          end(e);
        }
      } while (!state.compareAndSet(STARTING, FLYING));
    }

    @Override
    public void end(Throwable failed) {
      count(start, failed);
      pause = pauses(failed);
      if (!state.compareAndSet(STARTING, ENDED)) {
        run();
      }
    }
  }
}
