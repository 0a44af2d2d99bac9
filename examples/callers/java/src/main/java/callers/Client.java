package callers;

import callers.orders.BadField;
import callers.orders.GetRequest;
import callers.orders.ImportReply;
import callers.orders.Order;
import callers.orders.OrdersGrpc;
import callers.orders.PlaceRequest;
import callers.orders.WatchRequest;
import com.google.protobuf.Any;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** Calls the server of orders.proto: Client HOST:PORT [CA.pem]. */
public final class Client {
  private static final Metadata.Key<String> CUSTOMER = key("customer");
  private static final Metadata.Key<String> WAREHOUSE = key("warehouse");

  public static void main(String[] args) throws Exception {
    ChannelCredentials credentials = InsecureChannelCredentials.create();
    if (args.length > 1) {
      credentials = TlsChannelCredentials.newBuilder().trustManager(new File(args[1])).build();
    }
    ManagedChannel channel = Grpc.newChannelBuilder(args[0], credentials).build();
    try {
      place(channel);
      refused(channel);
      streams(channel);
      late(channel);
    } finally {
      channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
    }
  }

  /** A call with a deadline, metadata, and what the server says after the reply. */
  private static void place(ManagedChannel channel) {
    Metadata headers = new Metadata();
    headers.put(CUSTOMER, "ann");
    AtomicReference<Metadata> trailers = new AtomicReference<>();
    Order order =
        OrdersGrpc.newBlockingStub(channel)
            .withDeadlineAfter(10, TimeUnit.SECONDS)
            .withCompression("gzip")
            .withInterceptors(
                MetadataUtils.newAttachHeadersInterceptor(headers),
                MetadataUtils.newCaptureMetadataInterceptor(new AtomicReference<>(), trailers))
            .place(PlaceRequest.newBuilder().setItem("tea").setQuantity(2).build());
    System.out.printf(
        "placed %d: %s for %s, from %s%n",
        order.getNumber(), order.getItem(), order.getCustomer(), trailers.get().get(WAREHOUSE));
  }

  /** An error with details. */
  private static void refused(ManagedChannel channel) throws Exception {
    try {
      OrdersGrpc.newBlockingStub(channel)
          .withDeadlineAfter(10, TimeUnit.SECONDS)
          .place(PlaceRequest.newBuilder().setItem("cola").build());
    } catch (StatusRuntimeException e) {
      System.out.printf("refused: %s: %s%n", e.getStatus().getCode(), e.getStatus().getDescription());
      for (Any detail : StatusProto.fromThrowable(e).getDetailsList()) {
        if (detail.is(BadField.class)) {
          BadField bad = detail.unpack(BadField.class);
          System.out.printf("  %s: want %s%n", bad.getField(), bad.getWant());
        }
      }
    }
  }

  private static void streams(ManagedChannel channel) throws Exception {
    OrdersGrpc.OrdersStub stub = OrdersGrpc.newStub(channel).withDeadlineAfter(10, TimeUnit.SECONDS);

    // A stream of the client.
    Last<ImportReply> imported = new Last<>(r -> {});
    StreamObserver<PlaceRequest> items = stub.import_(imported);
    for (String item : new String[] {"coffee", "tea"}) {
      items.onNext(PlaceRequest.newBuilder().setItem(item).setQuantity(1).build());
    }
    items.onCompleted();
    System.out.printf("imported %d%n", imported.get().getCount());

    // A stream of the server.
    Iterator<Order> watch =
        OrdersGrpc.newBlockingStub(channel)
            .withDeadlineAfter(10, TimeUnit.SECONDS)
            .watch(WatchRequest.newBuilder().setCount(3).build());
    watch.forEachRemaining(o -> System.out.printf("watched %d: %s%n", o.getNumber(), o.getItem()));

    // A stream in both directions.
    Last<Order> found =
        new Last<>(o -> System.out.printf("found %d: %s%n", o.getNumber(), o.getItem()));
    StreamObserver<GetRequest> questions = stub.find(found);
    for (int number : new int[] {3, 2}) {
      questions.onNext(GetRequest.newBuilder().setNumber(number).build());
    }
    questions.onCompleted();
    found.get();
  }

  /** A deadline that passes: there is no fourth order. */
  private static void late(ManagedChannel channel) {
    Iterator<Order> watch =
        OrdersGrpc.newBlockingStub(channel)
            .withDeadlineAfter(500, TimeUnit.MILLISECONDS)
            .watch(WatchRequest.getDefaultInstance());
    int last = 0;
    try {
      while (watch.hasNext()) {
        last = watch.next().getNumber();
      }
    } catch (StatusRuntimeException e) {
      System.out.printf("out of time: %s after %d%n", e.getStatus().getCode(), last);
    }
  }

  /** Hands on each message, and has the last one at the end. */
  private static final class Last<T> implements StreamObserver<T> {
    private final Consumer<T> each;
    private final CompletableFuture<T> end = new CompletableFuture<>();
    private T last;

    Last(Consumer<T> each) {
      this.each = each;
    }

    T get() throws Exception {
      return end.get();
    }

    @Override
    public void onNext(T message) {
      last = message;
      each.accept(message);
    }

    @Override
    public void onError(Throwable t) {
      end.completeExceptionally(t);
    }

    @Override
    public void onCompleted() {
      end.complete(last);
    }
  }

  private static Metadata.Key<String> key(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }
}
