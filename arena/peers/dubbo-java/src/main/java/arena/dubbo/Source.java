package arena.dubbo;

import arena.load.Caller;
import java.util.function.Supplier;
import org.apache.dubbo.config.ReferenceConfig;

/** Where the calls of one caller get their reference from: one that is kept, or a fresh one for each call. */
final class Source<S> {
  private final ReferenceConfig<S> kept; // null: fresh ones
  private final Supplier<ReferenceConfig<S>> fresh;
  private int number; // of the next call

  private Source(ReferenceConfig<S> kept, Supplier<ReferenceConfig<S>> fresh) {
    this.kept = kept;
    this.fresh = fresh;
  }

  static <S> Source<S> kept(ReferenceConfig<S> reference) {
    return new Source<>(reference, null);
  }

  static <S> Source<S> fresh(Supplier<ReferenceConfig<S>> fresh) {
    return new Source<>(null, fresh);
  }

  Caller.Blocking blocking(Calls.Waiting<S> calls) {
    return () -> {
      ReferenceConfig<S> reference = take();
      try {
        calls.call(reference.get(), number++);
      } finally {
        give(reference);
      }
    };
  }

  /** Of a kept reference only: a fresh one connects and closes in calls that wait, where replies arrive. */
  Caller.Async async(Calls.Starting<S> calls) {
    return done -> calls.start(kept.get(), number++, done);
  }

  private ReferenceConfig<S> take() {
    return kept != null ? kept : fresh.get();
  }

  private void give(ReferenceConfig<S> reference) {
    if (kept == null) {
      reference.destroy();
    }
  }
}
