package arena.dubbo;

/** The service of add over the protocol of Dubbo. */
public interface MathService {
  int add(int a, int b);
}
