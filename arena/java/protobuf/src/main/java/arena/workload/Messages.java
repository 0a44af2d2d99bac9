package arena.workload;

import arena.load.Payload;
import arena.load.UsageException;
import arena.load.WrongReply;
import com.google.protobuf.Descriptors.FieldDescriptor;

/** The messages of say as protobuf. */
public final class Messages {
  private Messages() {}

  /** Returns the request of say whose protobuf encoding has the given number of bytes. */
  public static BenchmarkMessage request(int payload) throws UsageException {
    if (payload == Payload.STANDARD) {
      return filled();
    }
    return BenchmarkMessage.newBuilder()
        .setField1("x")
        .setField2(1)
        .setField3(1)
        .setField9(Payload.field9(payload))
        .build();
  }

  /** Sets every scalar and string field and leaves the repeated one empty. */
  private static BenchmarkMessage filled() {
    BenchmarkMessage.Builder m = BenchmarkMessage.newBuilder();
    for (FieldDescriptor f : BenchmarkMessage.getDescriptor().getFields()) {
      if (f.isRepeated()) {
        continue;
      }
      switch (f.getJavaType()) {
        case STRING -> m.setField(f, Payload.TEXT);
        case BOOLEAN -> m.setField(f, true);
        case INT -> m.setField(f, Payload.NUMBER);
        case LONG -> m.setField(f, (long) Payload.NUMBER);
        default -> throw new IllegalStateException("no value for a field of type " + f.getType());
      }
    }
    return m.build();
  }

  /** Returns the reply to a request. */
  public static BenchmarkMessage answer(BenchmarkMessage request) {
    return request.toBuilder().setField1(Payload.ANSWER1).setField2(Payload.ANSWER2).build();
  }

  /** Throws unless m is a reply of say. */
  public static void check(BenchmarkMessage m) throws WrongReply {
    Payload.check(m.getField1(), m.getField2());
  }
}
