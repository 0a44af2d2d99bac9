package arena.thrift;

import arena.load.Address;
import arena.load.Caller;
import arena.load.ClientOptions;
import arena.load.Payload;
import arena.load.Program;
import arena.load.ServerOptions;
import arena.load.UsageException;
import arena.load.WrongReply;
import arena.thrift.idl.BenchmarkMessage;
import arena.thrift.idl.MathService;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.server.TThreadedSelectorServer;
import org.apache.thrift.transport.TNonblockingServerSocket;
import org.apache.thrift.transport.TNonblockingServerSocket.NonblockingAbstractServerSocketArgs;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TServerSocket.ServerSocketTransportArgs;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.layered.TFastFramedTransport;

/** Apache Thrift: framed transport, binary protocol, one call at a time on a connection. */
public final class Peer extends Program {
  /** Thousands of callers connect at once. The default of 50 lets the kernel drop most of them for a second. */
  private static final int BACKLOG = 4096;

  private static final int TIMEOUT_MILLIS = 60_000;

  private Peer() {
    super("thrift-java", Map.of("server", List.of("pool", "selector")), Map.of());
  }

  public static void main(String[] args) {
    new Peer().start(args);
  }

  @Override
  protected void serve(ServerOptions o, Map<String, String> chosen) throws TTransportException {
    InetSocketAddress address = new InetSocketAddress(o.address().host(), o.address().port());
    TServer server = chosen.get("server").equals("pool") ? pool(o, address) : selector(o, address);
    new Thread(server::serve, "serve").start();
  }

  /** A thread for each connection. */
  private static TServer pool(ServerOptions o, InetSocketAddress address) throws TTransportException {
    ServerSocketTransportArgs socket = new ServerSocketTransportArgs().bindAddr(address).backlog(BACKLOG);
    return new TThreadPoolServer(
        new TThreadPoolServer.Args(new TServerSocket(socket))
            .processor(new MathService.Processor<>(new Handler(o)))
            .transportFactory(new TFastFramedTransport.Factory())
            .protocolFactory(new TBinaryProtocol.Factory()));
  }

  /** Two threads for all connections, which handle what they have read. */
  private static TServer selector(ServerOptions o, InetSocketAddress address) throws TTransportException {
    NonblockingAbstractServerSocketArgs socket =
        new NonblockingAbstractServerSocketArgs().bindAddr(address).backlog(BACKLOG);
    return new TThreadedSelectorServer(
        new TThreadedSelectorServer.Args(new TNonblockingServerSocket(socket))
            .processor(new MathService.Processor<>(new Handler(o)))
            .protocolFactory(new TBinaryProtocol.Factory())
            .selectorThreads(Runtime.getRuntime().availableProcessors())
            .workerThreads(0));
  }

  private record Handler(ServerOptions o) implements MathService.Iface {
    @Override
    public BenchmarkMessage Say(BenchmarkMessage message) {
      o.delay();
      return Messages.answer(message);
    }

    @Override
    public int Add(int a, int b) {
      o.delay();
      return a + b;
    }
  }

  @Override
  protected IntFunction<Caller> open(ClientOptions o, Map<String, String> chosen) throws UsageException, TException {
    if (o.window() > 1) {
      throw new UsageException("--window: the blocking client has no asynchronous API");
    }
    if (!o.fresh() && o.connections() < o.callers()) {
      throw new UsageException(
          "--conns " + o.conns() + ": a connection carries one call at a time, use --conns 0 or --fresh");
    }
    BenchmarkMessage request = Messages.request(o.payload());
    Connection[] connections = new Connection[o.callers()];
    for (int i = 0; i < connections.length; i++) {
      connections[i] = new Connection(o.address(i));
      if (!o.fresh()) {
        connections[i].client();
      }
    }
    return i -> new ThriftCaller(connections[i], o.fresh(), o.say() ? request : null);
  }

  private static final class ThriftCaller implements Caller.Blocking {
    private final Connection connection;
    private final boolean fresh;
    private final BenchmarkMessage say; // null: it adds
    private int number;

    ThriftCaller(Connection connection, boolean fresh, BenchmarkMessage say) {
      this.connection = connection;
      this.fresh = fresh;
      this.say = say;
    }

    @Override
    public void call() throws TException, WrongReply {
      try {
        if (say != null) {
          Messages.check(connection.client().Say(say));
        } else {
          int a = number++ % 1000000;
          Payload.checkSum(a, connection.client().Add(a, Payload.ADDEND));
        }
      } catch (TApplicationException e) {
        throw e; // the server's answer
      } catch (TException e) {
        connection.close(); // nobody knows what comes next on it
        throw e;
      }
      if (fresh) {
        connection.close();
      }
    }
  }

  /** A connection that opens when it is used. */
  private static final class Connection {
    private final Address address;
    private TSocket socket; // null: closed
    private MathService.Client client;

    Connection(Address address) {
      this.address = address;
    }

    MathService.Client client() throws TException {
      if (socket == null) {
        TSocket opening = new TSocket(address.host(), address.port(), TIMEOUT_MILLIS);
        opening.open();
        socket = opening;
        client = new MathService.Client(new TBinaryProtocol(new TFastFramedTransport(socket)));
      }
      return client;
    }

    void close() {
      if (socket != null) {
        socket.close();
        socket = null;
      }
    }
  }
}
