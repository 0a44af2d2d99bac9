package arena.dubbo;

import arena.bean.BenchmarkMessage;

/** The service of say over the protocol of Dubbo. */
public interface Hello {
  BenchmarkMessage say(BenchmarkMessage message);
}
