package arena.thrift;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import arena.load.WrongReply;
import arena.thrift.idl.BenchmarkMessage;
import com.google.protobuf.Descriptors.FieldDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.thrift.TDeserializer;
import org.apache.thrift.TException;
import org.apache.thrift.TSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MessagesTest {
  /** The fields of Thrift have the numbers of those of protobuf. It is converted from what has travelled. */
  private static arena.workload.BenchmarkMessage converted(BenchmarkMessage message) throws TException {
    BenchmarkMessage read = new BenchmarkMessage();
    new TDeserializer().deserialize(read, new TSerializer().serialize(message));
    arena.workload.BenchmarkMessage.Builder m = arena.workload.BenchmarkMessage.newBuilder();
    for (FieldDescriptor f : arena.workload.BenchmarkMessage.getDescriptor().getFields()) {
      BenchmarkMessage._Fields field = read.fieldForId(f.getNumber());
      if (read.isSet(field)) {
        m.setField(f, read.getFieldValue(field));
      }
    }
    return m.build();
  }

  @ParameterizedTest
  @ValueSource(ints = {581, 64})
  void convertsToTheBytesOfTheContract(int payload) throws Exception {
    byte[] want = Files.readAllBytes(Path.of(System.getProperty("arena.testdata"), "say" + payload + ".bin"));
    assertArrayEquals(want, converted(Messages.request(payload)).toByteArray());
  }

  @Test
  void convertsToALargeMessage() throws Exception {
    assertEquals(1 << 20, converted(Messages.request(1 << 20)).getSerializedSize());
  }

  @Test
  void tellsTheRightReply() throws Exception {
    BenchmarkMessage request = Messages.request(581);
    assertThrows(WrongReply.class, () -> Messages.check(request));
    Messages.check(Messages.answer(request));
  }
}
