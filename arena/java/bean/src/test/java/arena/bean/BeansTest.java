package arena.bean;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import arena.load.WrongReply;
import com.google.protobuf.Descriptors.FieldDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BeansTest {
  /** The fields of a bean have the names of those of protobuf. */
  private static arena.workload.BenchmarkMessage converted(BenchmarkMessage bean) throws Exception {
    arena.workload.BenchmarkMessage.Builder m = arena.workload.BenchmarkMessage.newBuilder();
    for (FieldDescriptor f : arena.workload.BenchmarkMessage.getDescriptor().getFields()) {
      Object value = BenchmarkMessage.class.getField(f.getName()).get(bean);
      if (value != null) {
        m.setField(f, value);
      }
    }
    return m.build();
  }

  @ParameterizedTest
  @ValueSource(ints = {581, 64})
  void convertsToTheBytesOfTheContract(int payload) throws Exception {
    byte[] want = Files.readAllBytes(Path.of(System.getProperty("arena.testdata"), "say" + payload + ".bin"));
    assertArrayEquals(want, converted(Beans.request(payload)).toByteArray());
  }

  @Test
  void convertsToALargeMessage() throws Exception {
    assertEquals(1 << 20, converted(Beans.request(1 << 20)).getSerializedSize());
  }

  @Test
  void tellsTheRightReply() throws Exception {
    BenchmarkMessage request = Beans.request(581);
    assertThrows(WrongReply.class, () -> Beans.check(request));
    Beans.check(Beans.answer(request));
  }
}
