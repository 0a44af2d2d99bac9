package arena.grpc;

import arena.load.Caller;
import arena.load.Payload;
import arena.load.WrongReply;
import arena.workload.AddRequest;
import arena.workload.BenchmarkMessage;
import arena.workload.HelloGrpc;
import arena.workload.HelloGrpc.HelloBlockingStub;
import arena.workload.MathServiceGrpc;
import arena.workload.MathServiceGrpc.MathServiceBlockingStub;
import arena.workload.Messages;
import io.grpc.Channel;
import io.grpc.ManagedChannel;
import java.util.function.Supplier;

/** A caller over the blocking stubs. */
final class BlockingCaller implements Caller.Blocking {
  private final BenchmarkMessage say; // null: it adds
  private final Stubs shared; // null: each call connects by itself
  private final Supplier<ManagedChannel> fresh;
  private int number;

  BlockingCaller(BenchmarkMessage say, ManagedChannel shared, Supplier<ManagedChannel> fresh) {
    this.say = say;
    this.shared = shared == null ? null : Stubs.of(shared);
    this.fresh = fresh;
  }

  private record Stubs(HelloBlockingStub hello, MathServiceBlockingStub math) {
    static Stubs of(Channel channel) {
      return new Stubs(HelloGrpc.newBlockingStub(channel), MathServiceGrpc.newBlockingStub(channel));
    }
  }

  @Override
  public void call() throws WrongReply {
    if (shared != null) {
      call(shared);
      return;
    }
    ManagedChannel channel = fresh.get();
    try {
      call(Stubs.of(channel));
    } finally {
      channel.shutdownNow();
    }
  }

  private void call(Stubs stubs) throws WrongReply {
    if (say != null) {
      Messages.check(stubs.hello.say(say));
      return;
    }
    int a = number++ % 1000000;
    AddRequest request = AddRequest.newBuilder().setA(a).setB(Payload.ADDEND).build();
    Payload.checkSum(a, stubs.math.add(request).getX());
  }
}
