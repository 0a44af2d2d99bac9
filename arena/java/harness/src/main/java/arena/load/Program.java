package arena.load;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntFunction;

/** A peer: one program whose first argument is server or client. */
public abstract class Program {
  private static final int CONNECT_MILLIS = 5000;

  private final String name;
  private final Map<String, List<String>> serverChoices;
  private final Map<String, List<String>> clientChoices;

  /**
   * The choices are the peer's own flags with the values that they can have, the default first.
   *
   * @param name what errors begin with
   */
  protected Program(
      String name, Map<String, List<String>> serverChoices, Map<String, List<String>> clientChoices) {
    this.name = name;
    this.serverChoices = serverChoices;
    this.clientChoices = clientChoices;
  }

  /** Listens and returns; the process serves until it gets a signal. */
  protected abstract void serve(ServerOptions o, Map<String, String> chosen) throws Exception;

  /**
   * Connects and returns what caller i calls. With fresh, each call connects by itself. {@link UsageException} says
   * that the framework cannot do what is asked for.
   */
  protected abstract IntFunction<Caller> open(ClientOptions o, Map<String, String> chosen) throws Exception;

  /** Runs the program of the command line and ends the process. */
  protected final void start(String[] args) {
    // Frameworks print banners and warnings, and the standard output belongs to the contract.
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Logs.quiet(name);
    int code = 0;
    try {
      run(Arrays.asList(args), out);
    } catch (UsageException e) {
      System.err.println(name + ": " + e.getMessage());
      code = 2;
    } catch (Throwable e) {
      System.err.println(name + ": " + chain(e));
      code = 1;
    }
    out.flush();
    // Not exit: the threads and the shutdown hooks of a framework have nothing to add to a result that is printed.
    Runtime.getRuntime().halt(code);
  }

  /** Returns an exception with its causes: those of frameworks often say only there what happened. */
  private static String chain(Throwable e) {
    StringBuilder text = new StringBuilder(e.toString());
    for (Throwable cause = e.getCause(); cause != null && cause != cause.getCause(); cause = cause.getCause()) {
      text.append(": ").append(cause);
    }
    return text.toString();
  }

  private void run(List<String> args, PrintStream out) throws Exception {
    String kind = args.isEmpty() ? "" : args.get(0);
    if (!kind.equals("server") && !kind.equals("client")) {
      throw new UsageException("the first argument is server or client, then --addr host:port and flags");
    }
    Map<String, List<String>> choices = kind.equals("server") ? serverChoices : clientChoices;
    Map<String, String> defaults = new LinkedHashMap<>(Map.of("addr", ""));
    choices.forEach((flag, values) -> defaults.put(flag, values.get(0)));
    if (kind.equals("server")) {
      defaults.putAll(Map.of("sleep-us", "0", "work-us", "0"));
      Flags flags = new Flags(defaults, args.subList(1, args.size()));
      Map<String, String> chosen = chosen(choices, flags);
      endWithSignal();
      serve(ServerOptions.of(flags), chosen);
      new CountDownLatch(1).await();
    }
    defaults.putAll(
        Map.of("workload", "say", "callers", "1", "conns", "1", "fresh", "false", "window", "1", "rate", "0"));
    defaults.putAll(Map.of("warmup", "1", "seconds", "5", "calls", "0", "payload", "" + Payload.STANDARD));
    Flags flags = new Flags(defaults, args.subList(1, args.size()));
    Map<String, String> chosen = chosen(choices, flags);
    ClientOptions o = ClientOptions.of(flags);
    for (Address address : o.addresses()) {
      reach(address);
    }
    out.println(Load.run(o, open(o, chosen)).json());
  }

  private static Map<String, String> chosen(Map<String, List<String>> choices, Flags flags) throws UsageException {
    Map<String, String> chosen = new LinkedHashMap<>();
    for (Map.Entry<String, List<String>> choice : choices.entrySet()) {
      String value = flags.text(choice.getKey());
      if (!choice.getValue().contains(value)) {
        throw new UsageException(
            "--" + choice.getKey() + " " + value + ": one of " + String.join(", ", choice.getValue()));
      }
      chosen.put(choice.getKey(), value);
    }
    return chosen;
  }

  /**
   * Ends the process with code 0 at SIGTERM, which is 143 otherwise. Frameworks have hooks of their own that wait for
   * calls in flight, some of them for ten seconds; whoever stops a server of the arena has stopped its clients.
   */
  private static void endWithSignal() {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0), "end"));
  }

  /** Throws if nobody listens: frameworks connect lazily, or try again for a long time. */
  private static void reach(Address address) throws IOException {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(address.host(), address.port()), CONNECT_MILLIS);
    } catch (IOException e) {
      throw new IOException("cannot connect to " + address + ", start its server first", e);
    }
  }
}
