package arena.dubbo;

import arena.load.Caller;
import arena.load.ClientOptions;
import arena.load.Program;
import arena.load.ServerOptions;
import arena.load.UsageException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.rpc.model.ModuleModel;

/** Apache Dubbo: its own protocol with Hessian, or Triple with protobuf. */
public final class Peer extends Program {
  private static final List<String> PROTOCOLS = List.of("dubbo", "tri");

  private Peer() {
    super(
        "dubbo-java",
        Map.of("protocol", PROTOCOLS, "dispatcher", List.of("all", "direct")),
        Map.of("protocol", PROTOCOLS, "mode", List.of("blocking", "async")));
  }

  public static void main(String[] args) {
    // Both are read once, when the first class of Dubbo loads.
    System.setProperty("netty.epoll.enable", "true");
    System.setProperty("dubbo.application.logger", "slf4j");
    new Peer().start(args);
  }

  @Override
  protected void serve(ServerOptions o, Map<String, String> chosen) throws UsageException {
    if (chosen.get("protocol").equals("tri") && chosen.get("dispatcher").equals("direct")) {
      throw new UsageException("--dispatcher direct: Triple has no dispatchers, use --protocol dubbo");
    }
    Services.export(o, chosen.get("protocol"), chosen.get("dispatcher"));
  }

  @Override
  protected IntFunction<Caller> open(ClientOptions o, Map<String, String> chosen) throws UsageException {
    boolean async = chosen.get("mode").equals("async");
    if (o.window() > 1 && !async) {
      throw new UsageException("--window needs the asynchronous API: add --mode async");
    }
    if (o.fresh() && async) {
      throw new UsageException("--fresh waits for each connection: use --mode blocking");
    }
    References references = new References(chosen.get("protocol"), async);
    return callers(o, references, async, Calls.of(chosen.get("protocol"), o));
  }

  private static <S> IntFunction<Caller> callers(
      ClientOptions o, References references, boolean async, Calls<S> calls) {
    IntFunction<Source<S>> sources = sources(o, references, calls.service());
    return i -> async ? sources.apply(i).async(calls.start()) : sources.apply(i).blocking(calls.call());
  }

  /** Connects, unless the connections are fresh ones, and returns where a caller gets its reference from. */
  private static <S> IntFunction<Source<S>> sources(ClientOptions o, References references, Class<S> service) {
    if (o.fresh()) {
      return i -> {
        ModuleModel module = references.module();
        return Source.fresh(() -> references.to(service, o.address(i), module));
      };
    }
    List<ReferenceConfig<S>> kept = new ArrayList<>();
    for (int i = 0; i < o.connections(); i++) {
      kept.add(references.to(service, o.address(i), references.module()));
      kept.get(i).get();
    }
    return i -> Source.kept(kept.get(i % kept.size()));
  }
}
