package arena.motan;

/** The service of add. */
public interface MathService {
  int add(int a, int b);
}
