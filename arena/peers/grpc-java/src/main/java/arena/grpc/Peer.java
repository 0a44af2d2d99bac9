package arena.grpc;

import arena.load.Address;
import arena.load.Caller;
import arena.load.ClientOptions;
import arena.load.Program;
import arena.load.ServerOptions;
import arena.load.UsageException;
import arena.workload.AddReply;
import arena.workload.AddRequest;
import arena.workload.BenchmarkMessage;
import arena.workload.HelloGrpc;
import arena.workload.MathServiceGrpc;
import arena.workload.Messages;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** gRPC for Java over Netty: with its default executors and blocking callers, or all on the threads of Netty. */
public final class Peer extends Program {
  private Peer() {
    super(
        "grpc-java",
        Map.of("executor", List.of("pool", "direct")),
        Map.of("mode", List.of("blocking", "async")));
  }

  public static void main(String[] args) {
    new Peer().start(args);
  }

  @Override
  protected void serve(ServerOptions o, Map<String, String> chosen) throws IOException {
    NettyServerBuilder server =
        NettyServerBuilder.forAddress(new InetSocketAddress(o.address().host(), o.address().port()))
            .addService(new Hello(o))
            .addService(new MathService(o));
    if (chosen.get("executor").equals("direct")) {
      server.directExecutor();
    }
    server.build().start();
  }

  private static final class Hello extends HelloGrpc.HelloImplBase {
    private final ServerOptions o;

    Hello(ServerOptions o) {
      this.o = o;
    }

    @Override
    public void say(BenchmarkMessage request, StreamObserver<BenchmarkMessage> reply) {
      o.delay();
      reply.onNext(Messages.answer(request));
      reply.onCompleted();
    }
  }

  private static final class MathService extends MathServiceGrpc.MathServiceImplBase {
    private final ServerOptions o;

    MathService(ServerOptions o) {
      this.o = o;
    }

    @Override
    public void add(AddRequest request, StreamObserver<AddReply> reply) {
      o.delay();
      reply.onNext(AddReply.newBuilder().setX(request.getA() + request.getB()).build());
      reply.onCompleted();
    }
  }

  @Override
  protected IntFunction<Caller> open(ClientOptions o, Map<String, String> chosen) throws UsageException {
    boolean async = chosen.get("mode").equals("async");
    if (o.window() > 1 && !async) {
      throw new UsageException("--window needs the asynchronous API: add --mode async");
    }
    BenchmarkMessage request = Messages.request(o.payload());
    ManagedChannel[] channels = new ManagedChannel[o.fresh() ? 0 : o.connections()];
    for (int i = 0; i < channels.length; i++) {
      channels[i] = connect(o.address(i), async);
      channels[i].getState(true); // connects now
    }
    return i -> {
      ManagedChannel shared = o.fresh() ? null : channels[i % channels.length];
      Supplier<ManagedChannel> fresh = () -> connect(o.address(i), async);
      if (async) {
        return new AsyncCaller(o.say() ? request : null, shared, fresh);
      }
      return new BlockingCaller(o.say() ? request : null, shared, fresh);
    };
  }

  /** Returns a channel, which is one connection. */
  private static ManagedChannel connect(Address address, boolean async) {
    NettyChannelBuilder channel = NettyChannelBuilder.forAddress(address.host(), address.port()).usePlaintext();
    if (async) {
      channel.directExecutor();
    }
    return channel.build();
  }
}
