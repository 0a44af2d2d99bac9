package arena.load;

import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** Frameworks log to java.util.logging, here or through a bridge: what is severe goes to the standard error. */
final class Logs {
  // Held, as the manager holds loggers weakly and a collected one forgets its level.
  private static final Logger ROOT = Logger.getLogger("");

  private Logs() {}

  static void quiet(String name) {
    LogManager.getLogManager().reset();
    ROOT.setLevel(Level.SEVERE);
    ROOT.addHandler(
        new Handler() {
          private final SimpleFormatter format = new SimpleFormatter();

          @Override
          public void publish(LogRecord record) {
            Throwable thrown = record.getThrown();
            String message = format.formatMessage(record);
            System.err.println(name + ": " + message + (thrown == null ? "" : ": " + thrown));
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        });
  }
}
