package arena.motan;

import arena.bean.Beans;
import arena.bean.BenchmarkMessage;
import arena.load.Address;
import arena.load.Caller;
import arena.load.ClientOptions;
import arena.load.Payload;
import arena.load.Program;
import arena.load.ServerOptions;
import arena.load.UsageException;
import com.weibo.api.motan.config.ProtocolConfig;
import com.weibo.api.motan.config.RefererConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/** Motan of Weibo: the second version of its protocol, with Hessian or with its own serialization, Breeze. */
public final class Peer extends Program {
  private static final List<String> SERIALIZATIONS = List.of("hessian2", "breeze");
  private static final int TIMEOUT_MILLIS = 60_000;

  private Peer() {
    super("motan", Map.of("serialization", SERIALIZATIONS), Map.of("serialization", SERIALIZATIONS));
  }

  public static void main(String[] args) {
    new Peer().start(args);
  }

  @Override
  protected void serve(ServerOptions o, Map<String, String> chosen) {
    Services.export(o, chosen.get("serialization"));
  }

  private interface Call<S> {
    /** Makes the caller's call of that number and checks the reply. */
    void call(S service, int number) throws Exception;
  }

  @Override
  protected IntFunction<Caller> open(ClientOptions o, Map<String, String> chosen) throws UsageException {
    if (o.window() > 1) {
      throw new UsageException("--window: asynchronous calls wait for their writes, so that nothing is gained");
    }
    String serialization = chosen.get("serialization");
    if (o.say()) {
      BenchmarkMessage request = Beans.request(o.payload());
      return callers(o, Hello.class, serialization, (hello, number) -> Beans.check(hello.say(request)));
    }
    return callers(
        o,
        MathService.class,
        serialization,
        (math, number) -> Payload.checkSum(number % 1000000, math.add(number % 1000000, Payload.ADDEND)));
  }

  private static <S> IntFunction<Caller> callers(
      ClientOptions o, Class<S> service, String serialization, Call<S> call) {
    if (o.fresh()) {
      return i -> fresh(service, o.address(i), serialization, call);
    }
    List<S> kept = new ArrayList<>();
    for (int i = 0; i < o.connections(); i++) {
      kept.add(reference(service, o.address(i), serialization).getRef());
    }
    return i -> kept(kept.get(i % kept.size()), call);
  }

  private static <S> Caller.Blocking kept(S service, Call<S> call) {
    int[] number = {0};
    return () -> call.call(service, number[0]++);
  }

  private static <S> Caller.Blocking fresh(Class<S> service, Address address, String serialization, Call<S> call) {
    int[] number = {0};
    return () -> {
      RefererConfig<S> reference = reference(service, address, serialization);
      try {
        call.call(reference.getRef(), number[0]++);
      } finally {
        reference.destroy();
      }
    };
  }

  /** Returns a reference of one connection, which is opened by getRef. */
  private static <S> RefererConfig<S> reference(Class<S> service, Address address, String serialization) {
    ProtocolConfig protocol = Protocols.of(serialization);
    protocol.setMinClientConnection(1);
    protocol.setMaxClientConnection(1);
    protocol.setHaStrategy("failfast"); // an error is counted and not tried again
    RefererConfig<S> reference = new RefererConfig<>();
    reference.setInterface(service);
    reference.setDirectUrl(address.toString());
    reference.setProtocol(protocol);
    reference.setRequestTimeout(TIMEOUT_MILLIS);
    reference.setConnectTimeout(TIMEOUT_MILLIS);
    reference.setAsyncInitConnection(false);
    return reference;
  }
}
