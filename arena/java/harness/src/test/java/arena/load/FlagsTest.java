package arena.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FlagsTest {
  private static ClientOptions client(String line) throws UsageException {
    Map<String, String> defaults = new HashMap<>();
    defaults.putAll(Map.of("addr", "", "workload", "say", "callers", "1", "conns", "1", "fresh", "false"));
    defaults.putAll(Map.of("window", "1", "rate", "0", "warmup", "1", "seconds", "5", "calls", "0", "payload", "581"));
    return ClientOptions.of(new Flags(defaults, List.of(line.split(" "))));
  }

  @Test
  void readsTheFlagsOfTheContract() throws UsageException {
    ClientOptions o =
        client("--addr a:1,b:2 --workload add --callers 100 --conns=0 --fresh --rate 1.5e3 --warmup 0.5 --payload 64");
    assertEquals(List.of(new Address("a", 1), new Address("b", 2)), o.addresses());
    assertEquals("add", o.workload());
    assertEquals(100, o.connections());
    assertTrue(o.fresh());
    assertEquals(1500, o.rate());
    assertEquals(500_000_000, o.warmupNanos());
    assertEquals(5_000_000_000L, o.measuredNanos());
    assertEquals(64, o.payload());
    assertEquals(new Address("b", 2), o.address(3));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "x",
        "--addr a",
        "--addr a:0",
        "--addr a:1,",
        "--addr a:1 --nonsense 1",
        "--addr a:1 --callers",
        "--addr a:1 --callers 0",
        "--addr a:1 --callers x",
        "--addr a:1 --conns -1",
        "--addr a:1 --window 0",
        "--addr a:1 --rate -1",
        "--addr a:1 --seconds NaN",
        "--addr a:1 --fresh=maybe",
        "--addr a:1 --payload 63",
        "--addr a:1 --workload talk",
      })
  void refusesOthers(String line) {
    assertThrows(UsageException.class, () -> client(line));
  }

  @Test
  void saysWhichPayloadFits() throws UsageException {
    // A length of 128 takes one byte more than one of 127, so that no message has 137 bytes.
    assertEquals(127, Payload.field9(136).length());
    assertEquals(128, Payload.field9(138).length());
    UsageException e = assertThrows(UsageException.class, () -> Payload.field9(137));
    assertEquals("payload of 137 bytes: no message has that size, 138 has", e.getMessage());
  }
}
