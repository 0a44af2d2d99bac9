package arena.motan;

import arena.bean.Beans;
import arena.load.ServerOptions;
import com.weibo.api.motan.config.ProtocolConfig;
import com.weibo.api.motan.config.RegistryConfig;
import com.weibo.api.motan.config.ServiceConfig;
import java.util.Map;

/** The services of a server. */
final class Services {
  /** Handlers at a time. */
  private static final int THREADS = 200;

  /** Calls that wait for a thread. By default none do: the 201st is refused. */
  private static final int QUEUE = 100_000;

  private Services() {}

  static void export(ServerOptions o, String serialization) {
    ProtocolConfig protocol = Protocols.of(serialization);
    protocol.setMaxWorkerThread(THREADS);
    protocol.setWorkerQueueSize(QUEUE);
    // The default refuses the calls of a method that takes more than half of the threads.
    protocol.setParameters(Map.of("providerProtectedStrategy", "none"));
    MathService math =
        (a, b) -> {
          o.delay();
          return a + b;
        };
    Hello hello =
        message -> {
          o.delay();
          return Beans.answer(message);
        };
    export(MathService.class, math, protocol, o);
    export(Hello.class, hello, protocol, o);
  }

  private static <T> void export(Class<T> service, T handler, ProtocolConfig protocol, ServerOptions o) {
    RegistryConfig registry = new RegistryConfig();
    registry.setRegProtocol("local");
    ServiceConfig<T> config = new ServiceConfig<>();
    config.setInterface(service);
    config.setRef(handler);
    config.setProtocol(protocol);
    config.setRegistry(registry);
    config.setHost(o.address().host()); // what a registry would be told; Motan listens on all addresses
    config.setShareChannel(true); // all services on one port
    config.setExport(protocol.getId() + ":" + o.address().port());
    config.export();
  }
}
