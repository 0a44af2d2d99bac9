package callers;

import callers.orders.OrdersGrpc;
import callers.orders.PlaceRequest;
import callers.orders.WatchRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Calls the server of orders.proto until the standard input ends: Drain HOST:PORT. */
public final class Drain {
  private static final AtomicLong made = new AtomicLong();
  private static final Queue<String> failed = new ConcurrentLinkedQueue<>();
  private static volatile boolean over;

  public static void main(String[] args) throws Exception {
    ManagedChannel channel =
        Grpc.newChannelBuilder(args[0], InsecureChannelCredentials.create()).build();
    OrdersGrpc.newBlockingStub(channel)
        .withDeadlineAfter(60, TimeUnit.SECONDS)
        .place(PlaceRequest.newBuilder().setItem("tea").setQuantity(1).build());
    System.out.println("calling");
    List<Thread> callers = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      Thread caller = new Thread(() -> call(channel));
      callers.add(caller);
      caller.start();
    }
    System.in.readAllBytes();
    over = true;
    for (Thread caller : callers) {
      caller.join();
    }
    channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
    String first = failed.isEmpty() ? "" : " " + failed.peek();
    System.out.printf("%d calls, %d failed%s%n", made.get(), failed.size(), first);
  }

  /** Makes unary calls and streams, one after the other. */
  private static void call(ManagedChannel channel) {
    while (!over) {
      OrdersGrpc.OrdersBlockingStub orders =
          OrdersGrpc.newBlockingStub(channel).withDeadlineAfter(60, TimeUnit.SECONDS);
      try {
        orders.place(PlaceRequest.newBuilder().setItem("tea").setQuantity(1).build());
        orders.watch(WatchRequest.newBuilder().setCount(1).build()).forEachRemaining(o -> {});
      } catch (StatusRuntimeException e) {
        failed.add(e.getStatus().toString());
      }
      made.addAndGet(2);
    }
  }
}
