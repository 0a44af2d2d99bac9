package arena.load;

/** The values of the messages of say, which peers without protobuf fill in as well. */
public final class Payload {
  /** The value of every string field of the message of 581 bytes. */
  public static final String TEXT = "许多往事在眼前一幕一幕，变的那麼模糊";

  /** The value of its integer fields; booleans are true. */
  public static final int NUMBER = 100000;

  /** Bytes of the message with every field set. */
  public static final int STANDARD = 581;

  /** The fewest bytes that can be asked for. */
  public static final int LEAST = 64;

  /** What the server sets field1 and field2 to. */
  public static final String ANSWER1 = "OK";

  public static final int ANSWER2 = 100;

  /** What the client of add sends as b. */
  public static final int ADDEND = 7;

  private Payload() {}

  /**
   * Returns the value of field9 in a message that has, as protobuf, the given number of bytes: other than 581, and with
   * field1 = x, field2 = 1 and field3 = 1 as the only other fields.
   */
  public static String field9(int bytes) throws UsageException {
    if (bytes < LEAST) {
      throw new UsageException("payload of " + bytes + " bytes: " + LEAST + " is the least");
    }
    int others = 3 + 2 + 2; // field1, field2, field3
    for (int length = bytes - others - 2; length > 0; length--) {
      int size = others + 1 + varint(length) + length;
      if (size == bytes) {
        return "x".repeat(length);
      }
      if (size < bytes) {
        break;
      }
    }
    throw new UsageException("payload of " + bytes + " bytes: no message has that size, " + (bytes + 1) + " has");
  }

  private static int varint(int value) {
    return (31 - Integer.numberOfLeadingZeros(value)) / 7 + 1;
  }

  /** Throws unless these are the fields of a right reply of say. */
  public static void check(String field1, int field2) throws WrongReply {
    if (field2 != ANSWER2 || !ANSWER1.equals(field1)) {
      throw new WrongReply();
    }
  }

  /** Throws unless x is the sum of a and {@link #ADDEND}. */
  public static void checkSum(int a, int x) throws WrongReply {
    if (x != a + ADDEND) {
      throw new WrongReply();
    }
  }
}
