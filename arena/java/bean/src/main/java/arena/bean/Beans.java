package arena.bean;

import arena.load.Payload;
import arena.load.UsageException;
import arena.load.WrongReply;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;

/** The messages of say as plain objects. */
public final class Beans {
  private Beans() {}

  /** Returns the request of say whose fields have, as protobuf, the given number of bytes. */
  public static BenchmarkMessage request(int payload) throws UsageException {
    BenchmarkMessage m = new BenchmarkMessage();
    if (payload == Payload.STANDARD) {
      fill(m);
      return m;
    }
    m.field1 = "x";
    m.field2 = 1;
    m.field3 = 1;
    m.field9 = Payload.field9(payload);
    return m;
  }

  private static void fill(BenchmarkMessage m) {
    for (Field f : BenchmarkMessage.class.getFields()) {
      if (Modifier.isStatic(f.getModifiers())) {
        continue;
      }
      Object value = null; // of the repeated field
      if (f.getType() == String.class) {
        value = Payload.TEXT;
      } else if (f.getType() == Integer.class) {
        value = Payload.NUMBER;
      } else if (f.getType() == Long.class) {
        value = (long) Payload.NUMBER;
      } else if (f.getType() == Boolean.class) {
        value = true;
      }
      try {
        f.set(m, value);
      } catch (IllegalAccessException e) {
        throw new IllegalStateException(e); // the fields are public
      }
    }
  }

  /** Makes a request its reply. */
  public static BenchmarkMessage answer(BenchmarkMessage m) {
    m.field1 = Payload.ANSWER1;
    m.field2 = Payload.ANSWER2;
    return m;
  }

  /** Throws unless m is a reply of say. */
  public static void check(BenchmarkMessage m) throws WrongReply {
    if (m == null || m.field2 == null) {
      throw new WrongReply();
    }
    Payload.check(m.field1, m.field2);
  }
}
