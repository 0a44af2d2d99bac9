package arena.load;

import java.util.ArrayList;
import java.util.List;

/** Where a server listens. */
public record Address(String host, int port) {
  static Address parse(String text) throws UsageException {
    int colon = text.lastIndexOf(':');
    if (colon > 0) {
      try {
        int port = Integer.parseInt(text.substring(colon + 1));
        if (port > 0 && port < 65536) {
          return new Address(text.substring(0, colon), port);
        }
      } catch (NumberFormatException e) {
        // said below
      }
    }
    throw new UsageException("address \"" + text + "\": use host:port");
  }

  static List<Address> parseAll(String text) throws UsageException {
    List<Address> all = new ArrayList<>();
    for (String one : text.split(",", -1)) {
      all.add(parse(one));
    }
    return List.copyOf(all);
  }

  @Override
  public String toString() {
    return host + ":" + port;
  }
}
