package arena.load;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import org.HdrHistogram.Histogram;

/** What a client program prints. */
record Result(
    long calls,
    long errors,
    long wrong,
    String firstError,
    long beganUnixNanos,
    long endedUnixNanos,
    Histogram latency) {

  String json() {
    return "{\"contract\":1,\"calls\":%d,\"errors\":%d,\"wrong\":%d,".formatted(calls, errors, wrong)
        + "\"first_error\":%s,".formatted(quoted(firstError))
        + "\"began_unix_ns\":%d,\"ended_unix_ns\":%d,".formatted(beganUnixNanos, endedUnixNanos)
        + "\"hdr\":\"%s\"}".formatted(encoded());
  }

  /** The V2 compressed encoding as base64. */
  private String encoded() {
    ByteBuffer buffer = ByteBuffer.allocate(latency.getNeededByteBufferCapacity());
    int length = latency.encodeIntoCompressedByteBuffer(buffer);
    return Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
  }

  private static String quoted(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c < ' ' || Character.isSurrogate(c)) {
        json.append("\\u%04x".formatted((int) c));
      } else {
        json.append(c);
      }
    }
    return json.append('"').toString();
  }
}
