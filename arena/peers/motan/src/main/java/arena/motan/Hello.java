package arena.motan;

import arena.bean.BenchmarkMessage;

/** The service of say. */
public interface Hello {
  BenchmarkMessage say(BenchmarkMessage message);
}
