package arena.load;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The flags of a command line: {@code --name value}, {@code --name=value}, and {@code --name} for a boolean. */
final class Flags {
  private final Map<String, String> values = new LinkedHashMap<>();

  /** Reads the arguments. The keys of defaults are the flags that there are; a boolean has true or false there. */
  Flags(Map<String, String> defaults, List<String> args) throws UsageException {
    values.putAll(defaults);
    for (int i = 0; i < args.size(); i++) {
      String arg = args.get(i);
      if (!arg.startsWith("-")) {
        throw new UsageException("argument " + arg + ": flags only, " + known());
      }
      String name = arg.substring(arg.startsWith("--") ? 2 : 1);
      String value = null;
      int equals = name.indexOf('=');
      if (equals >= 0) {
        value = name.substring(equals + 1);
        name = name.substring(0, equals);
      }
      String before = defaults.get(name);
      if (before == null) {
        throw new UsageException("unknown flag " + arg + ": " + known());
      }
      boolean bool = before.equals("true") || before.equals("false");
      if (value == null && bool) {
        value = "true";
      }
      if (value == null) {
        if (++i == args.size()) {
          throw new UsageException("flag --" + name + " needs a value");
        }
        value = args.get(i);
      }
      if (bool && !value.equals("true") && !value.equals("false")) {
        throw new UsageException("--" + name + " " + value + ": true or false");
      }
      values.put(name, value);
    }
  }

  private String known() {
    return "the flags are --" + String.join(", --", values.keySet());
  }

  String text(String name) {
    return values.get(name);
  }

  boolean bool(String name) {
    return values.get(name).equals("true");
  }

  /** A whole number that is not less than least. */
  int number(String name, int least) throws UsageException {
    try {
      int value = Integer.parseInt(text(name));
      if (value >= least) {
        return value;
      }
    } catch (NumberFormatException e) {
      // said below
    }
    throw new UsageException("--" + name + " " + text(name) + ": a whole number from " + least + " on");
  }

  /** A number that is not negative. */
  double decimal(String name) throws UsageException {
    try {
      double value = Double.parseDouble(text(name));
      if (value >= 0 && value < 1e9) {
        return value;
      }
    } catch (NumberFormatException e) {
      // said below
    }
    throw new UsageException("--" + name + " " + text(name) + ": a number from 0 on");
  }
}
