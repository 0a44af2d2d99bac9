package arena.workload;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import arena.load.WrongReply;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MessagesTest {
  @ParameterizedTest
  @ValueSource(ints = {581, 64})
  void hasTheBytesOfTheContract(int payload) throws Exception {
    byte[] want = Files.readAllBytes(Path.of(System.getProperty("arena.testdata"), "say" + payload + ".bin"));
    assertArrayEquals(want, Messages.request(payload).toByteArray());
  }

  @ParameterizedTest
  @ValueSource(ints = {64, 100, 581, 1000, 64 << 10, 1 << 20})
  void hasTheSizeThatWasAskedFor(int payload) throws Exception {
    assertEquals(payload, Messages.request(payload).getSerializedSize());
  }

  @Test
  void tellsTheRightReply() throws Exception {
    BenchmarkMessage request = Messages.request(581);
    Messages.check(Messages.answer(request));
    assertThrows(WrongReply.class, () -> Messages.check(request));
  }
}
