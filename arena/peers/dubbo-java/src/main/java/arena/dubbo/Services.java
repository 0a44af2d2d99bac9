package arena.dubbo;

import arena.bean.Beans;
import arena.load.ServerOptions;
import arena.workload.AddReply;
import arena.workload.AddRequest;
import arena.workload.BenchmarkMessage;
import arena.workload.DubboHelloTriple.HelloImplBase;
import arena.workload.DubboMathServiceTriple.MathServiceImplBase;
import arena.workload.Messages;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.rpc.model.ModuleModel;

/** The services of a server. */
final class Services {
  static final String SERIALIZATION = "hessian2";

  /** Handlers at a time, Dubbo's default. */
  private static final int THREADS = 200;

  /** Calls that wait for a thread. By default none do: the 201st is refused. */
  private static final int QUEUE = 100_000;

  private final ServerOptions o;
  private final ProtocolConfig protocol;
  private final ModuleModel module = Models.module();

  private Services(ServerOptions o, ProtocolConfig protocol) {
    this.o = o;
    this.protocol = protocol;
  }

  static void export(ServerOptions o, String protocol, String dispatcher) {
    ProtocolConfig config = new ProtocolConfig(protocol, o.address().port());
    config.setHost(o.address().host());
    config.setThreadpool("fixed");
    config.setThreads(THREADS);
    config.setQueues(QUEUE);
    Services services = new Services(o, config);
    if (protocol.equals("tri")) {
      services.export(arena.workload.MathService.class, services.new TripleMath());
      services.export(arena.workload.Hello.class, services.new TripleHello());
      return;
    }
    config.setSerialization(SERIALIZATION);
    config.setDispatcher(dispatcher);
    services.export(
        MathService.class,
        (a, b) -> {
          o.delay();
          return a + b;
        });
    services.export(
        Hello.class,
        message -> {
          o.delay();
          return Beans.answer(message);
        });
  }

  private <T> void export(Class<T> service, T handler) {
    ServiceConfig<T> config = new ServiceConfig<>(module);
    config.setInterface(service);
    config.setRef(handler);
    config.setProtocol(protocol);
    config.setRegistry(new RegistryConfig(RegistryConfig.NO_AVAILABLE));
    config.export();
  }

  private final class TripleHello extends HelloImplBase {
    @Override
    public BenchmarkMessage say(BenchmarkMessage request) {
      o.delay();
      return Messages.answer(request);
    }
  }

  private final class TripleMath extends MathServiceImplBase {
    @Override
    public AddReply add(AddRequest request) {
      o.delay();
      return AddReply.newBuilder().setX(request.getA() + request.getB()).build();
    }
  }
}
