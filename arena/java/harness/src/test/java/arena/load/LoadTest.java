package arena.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LoadTest {
  private static ClientOptions options(int callers, int window, double rate, double seconds, int calls) {
    long measured = (long) (seconds * 1e9);
    List<Address> servers = List.of(new Address("h", 1), new Address("h", 2));
    return new ClientOptions(servers, "say", callers, 0, false, window, rate, 0, measured, calls, 581);
  }

  @Test
  void countsCallsExactly() throws Exception {
    AtomicInteger made = new AtomicInteger();
    Caller.Blocking blocking = made::incrementAndGet;
    Caller.Async async =
        done -> {
          made.incrementAndGet();
          done.end(null);
        };
    for (Caller caller : List.of(blocking, async)) {
      made.set(0);
      Result r = Load.run(options(7, 3, 0, 0, 100_000), i -> caller);
      assertEquals(100_000, made.get());
      assertEquals(100_000, r.calls());
      assertEquals(100_000, r.latency().getTotalCount());
      assertEquals(0, r.errors() + r.wrong());
      assertTrue(r.endedUnixNanos() > r.beganUnixNanos());
    }
  }

  @Test
  void anAsynchronousCallerWaitsForItsReply() throws Exception {
    ScheduledExecutorService elsewhere = Executors.newScheduledThreadPool(4);
    AtomicInteger[] flying = {new AtomicInteger(), new AtomicInteger(), new AtomicInteger()};
    AtomicInteger most = new AtomicInteger();
    Result r =
        Load.run(
            options(3, 2, 0, 0, 3000),
            i ->
                (Caller.Async)
                    done -> {
                      most.accumulateAndGet(flying[i].incrementAndGet(), Math::max);
                      elsewhere.execute(
                          () -> {
                            flying[i].decrementAndGet();
                            done.end(null);
                          });
                    });
    elsewhere.shutdown();
    assertEquals(3000, r.calls());
    assertTrue(most.get() <= 2, most + " calls in flight of a caller with a window of 2");
  }

  @Test
  void tellsWrongRepliesFromErrors() throws Exception {
    for (boolean async : List.of(false, true)) {
      AtomicInteger n = new AtomicInteger();
      Caller.Blocking blocking =
          () -> {
            switch (n.getAndIncrement() % 3) {
              case 0 -> throw new WrongReply();
              case 1 -> throw new IllegalStateException("broken \"pipe\"\n");
              default -> {}
            }
          };
      Caller.Async chained =
          done -> {
            try {
              blocking.call();
              done.end(null);
            } catch (Exception e) {
              done.end(e);
            }
          };
      Result r = Load.run(options(1, 1, 0, 0, 9), i -> async ? chained : blocking);
      assertEquals(3, r.calls());
      assertEquals(3, r.wrong());
      assertEquals(3, r.errors());
      assertTrue(r.json().contains("\"first_error\":\"java.lang.IllegalStateException: broken \\\"pipe\\\"\\u000a\""));
    }
  }

  /** Latency counts from when a call was due: one stall of 50 ms is seen by the calls that had to wait for it. */
  @Test
  void anOpenLoopShowsAStall() throws Exception {
    AtomicInteger n = new AtomicInteger();
    Caller.Blocking stalls =
        () -> {
          if (n.getAndIncrement() == 0) {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(50);
            while (System.nanoTime() < end) {
              LockSupport.parkNanos(end - System.nanoTime());
            }
          }
        };
    Result r = Load.run(options(1, 1, 1000, 0, 40), i -> stalls);
    // Call k is due at k ms and cannot start before 50 ms.
    assertTrue(r.latency().getValueAtPercentile(50) >= TimeUnit.MILLISECONDS.toNanos(25));
  }

  @Test
  void theRateIsThatOfAllCallers() throws Exception {
    AtomicInteger n = new AtomicInteger();
    Caller.Async counts =
        done -> {
          n.incrementAndGet();
          done.end(null);
        };
    Result r = Load.run(options(10, 1, 1000, 0.3, 0), i -> counts);
    assertEquals(300, n.get());
    assertTrue(r.calls() <= 300 && r.errors() == 0);
    assertEquals(300_000_000, r.endedUnixNanos() - r.beganUnixNanos());
  }

  @Test
  void printsAHistogramThatCanBeRead() throws Exception {
    Result r = Load.run(options(1, 1, 0, 0, 1000), i -> (Caller.Blocking) () -> {});
    Matcher hdr = Pattern.compile("\"hdr\":\"(HISTFAAA[^\"]*)\"").matcher(r.json());
    assertTrue(hdr.find(), r.json());
    ByteBuffer encoded = ByteBuffer.wrap(Base64.getDecoder().decode(hdr.group(1)));
    Histogram read = Histogram.decodeFromCompressedByteBuffer(encoded, 0);
    assertEquals(r.latency(), read);
    assertEquals(3, read.getNumberOfSignificantValueDigits());
    assertEquals(60_000_000_000L, read.getHighestTrackableValue());
  }
}
