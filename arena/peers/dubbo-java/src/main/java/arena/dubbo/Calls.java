package arena.dubbo;

import arena.bean.Beans;
import arena.load.Caller.Done;
import arena.load.ClientOptions;
import arena.load.Payload;
import arena.load.UsageException;
import arena.workload.AddRequest;
import arena.workload.Messages;
import java.util.concurrent.CompletableFuture;
import org.apache.dubbo.rpc.RpcContext;

/**
 * How one workload is called over one protocol, by a client that waits and by one that does not. The references of the
 * latter are asynchronous.
 */
record Calls<S>(Class<S> service, Waiting<S> call, Starting<S> start) {

  interface Waiting<S> {
    /** Makes the caller's call of that number and checks the reply. */
    void call(S service, int number) throws Exception;
  }

  interface Starting<S> {
    void start(S service, int number, Done done);
  }

  private interface Check<T> {
    void check(T reply) throws Exception;
  }

  static Calls<?> of(String protocol, ClientOptions o) throws UsageException {
    if (protocol.equals("dubbo")) {
      return o.say() ? hessianSay(o.payload()) : hessianAdd();
    }
    return o.say() ? tripleSay(o.payload()) : tripleAdd();
  }

  private static Calls<?> hessianSay(int payload) throws UsageException {
    arena.bean.BenchmarkMessage request = Beans.request(payload);
    return new Calls<>(
        Hello.class,
        (hello, number) -> Beans.check(hello.say(request)),
        (hello, number, done) -> {
          hello.say(request);
          finish(Calls.<arena.bean.BenchmarkMessage>begun(), Beans::check, done);
        });
  }

  private static Calls<?> hessianAdd() {
    return new Calls<>(
        MathService.class,
        (math, number) -> Payload.checkSum(number % 1000000, math.add(number % 1000000, Payload.ADDEND)),
        (math, number, done) -> {
          int a = number % 1000000;
          math.add(a, Payload.ADDEND);
          finish(Calls.<Integer>begun(), x -> Payload.checkSum(a, x), done);
        });
  }

  private static Calls<?> tripleSay(int payload) throws UsageException {
    arena.workload.BenchmarkMessage request = Messages.request(payload);
    return new Calls<>(
        arena.workload.Hello.class,
        (hello, number) -> Messages.check(hello.say(request)),
        (hello, number, done) -> finish(hello.sayAsync(request), Messages::check, done));
  }

  private static Calls<?> tripleAdd() {
    return new Calls<>(
        arena.workload.MathService.class,
        (math, number) -> Payload.checkSum(number % 1000000, math.add(sum(number)).getX()),
        (math, number, done) ->
            finish(math.addAsync(sum(number)), reply -> Payload.checkSum(number % 1000000, reply.getX()), done));
  }

  private static AddRequest sum(int number) {
    return AddRequest.newBuilder().setA(number % 1000000).setB(Payload.ADDEND).build();
  }

  /** Returns the reply to come of the call that this thread has just begun, which returned nothing by itself. */
  private static <T> CompletableFuture<T> begun() {
    return RpcContext.getServiceContext().getCompletableFuture();
  }

  private static <T> void finish(CompletableFuture<T> call, Check<T> check, Done done) {
    call.whenComplete(
        (reply, failed) -> {
          Throwable why = failed;
          if (why == null) {
            try {
              check.check(reply);
            } catch (Exception e) {
              why = e;
            }
          }
          done.end(why);
        });
  }
}
