package arena.thrift;

import arena.load.Payload;
import arena.load.UsageException;
import arena.load.WrongReply;
import arena.thrift.idl.BenchmarkMessage;
import arena.thrift.idl.BenchmarkMessage._Fields;
import org.apache.thrift.protocol.TType;

/** The messages of say as Thrift. */
final class Messages {
  private Messages() {}

  /** Returns the request of say whose fields have, as protobuf, the given number of bytes. */
  static BenchmarkMessage request(int payload) throws UsageException {
    if (payload == Payload.STANDARD) {
      return filled();
    }
    return new BenchmarkMessage("x", 1, 1).setField9(Payload.field9(payload));
  }

  /** Sets every scalar and string field and leaves the list out. */
  private static BenchmarkMessage filled() {
    BenchmarkMessage m = new BenchmarkMessage();
    for (_Fields f : _Fields.values()) {
      switch (BenchmarkMessage.metaDataMap.get(f).valueMetaData.type) {
        case TType.STRING -> m.setFieldValue(f, Payload.TEXT);
        case TType.BOOL -> m.setFieldValue(f, true);
        case TType.I32 -> m.setFieldValue(f, Payload.NUMBER);
        case TType.I64 -> m.setFieldValue(f, (long) Payload.NUMBER);
        default -> {} // the list
      }
    }
    return m;
  }

  /** Makes a request its reply. */
  static BenchmarkMessage answer(BenchmarkMessage m) {
    return m.setField1(Payload.ANSWER1).setField2(Payload.ANSWER2);
  }

  /** Throws unless m is a reply of say. */
  static void check(BenchmarkMessage m) throws WrongReply {
    Payload.check(m.getField1(), m.getField2());
  }
}
