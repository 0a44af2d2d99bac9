package arena.grpc;

import arena.load.Caller;
import arena.load.Payload;
import arena.load.WrongReply;
import arena.workload.AddReply;
import arena.workload.AddRequest;
import arena.workload.BenchmarkMessage;
import arena.workload.HelloGrpc;
import arena.workload.HelloGrpc.HelloStub;
import arena.workload.MathServiceGrpc;
import arena.workload.MathServiceGrpc.MathServiceStub;
import arena.workload.Messages;
import io.grpc.Channel;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.util.function.Supplier;

/** A caller over the asynchronous stubs. */
final class AsyncCaller implements Caller.Async {
  private final BenchmarkMessage say; // null: it adds
  private final Stubs shared; // null: each call connects by itself
  private final Supplier<ManagedChannel> fresh;
  private int number;

  AsyncCaller(BenchmarkMessage say, ManagedChannel shared, Supplier<ManagedChannel> fresh) {
    this.say = say;
    this.shared = shared == null ? null : Stubs.of(shared);
    this.fresh = fresh;
  }

  private record Stubs(HelloStub hello, MathServiceStub math) {
    static Stubs of(Channel channel) {
      return new Stubs(HelloGrpc.newStub(channel), MathServiceGrpc.newStub(channel));
    }
  }

  @Override
  public void start(Done done) {
    if (shared != null) {
      start(shared, done);
      return;
    }
    ManagedChannel channel = fresh.get();
    start(
        Stubs.of(channel),
        failed -> {
          channel.shutdownNow();
          done.end(failed);
        });
  }

  private void start(Stubs stubs, Done done) {
    if (say != null) {
      stubs.hello.say(
          say,
          new Reply<>(done) {
            @Override
            void check(BenchmarkMessage reply) throws WrongReply {
              Messages.check(reply);
            }
          });
      return;
    }
    int a = number++ % 1000000;
    stubs.math.add(
        AddRequest.newBuilder().setA(a).setB(Payload.ADDEND).build(),
        new Reply<>(done) {
          @Override
          void check(AddReply reply) throws WrongReply {
            Payload.checkSum(a, reply.getX());
          }
        });
  }

  /** Takes one reply. The call ends with its status, which comes after the reply. */
  private abstract static class Reply<T> implements StreamObserver<T> {
    private final Done done;
    private Throwable wrong;

    Reply(Done done) {
      this.done = done;
    }

    abstract void check(T reply) throws WrongReply;

    @Override
    public void onNext(T reply) {
      try {
        check(reply);
      } catch (WrongReply e) {
        wrong = e;
      }
    }

    @Override
    public void onError(Throwable failed) {
      done.end(failed);
    }

    @Override
    public void onCompleted() {
      done.end(wrong);
    }
  }
}
