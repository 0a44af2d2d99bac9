package arena.load;

/**
 * One caller: it makes a call, checks the reply, and is asked for the next call only after that. It decides whether the
 * load gives it a thread or calls it from wherever the reply before arrived.
 */
public sealed interface Caller {
  /** A caller that holds a thread while it waits. */
  @FunctionalInterface
  non-sealed interface Blocking extends Caller {
    /** Makes a call and checks its reply; {@link WrongReply} says that the reply was wrong. */
    void call() throws Exception;
  }

  /** A caller over the asynchronous API of its framework. It is used by one thread at a time. */
  @FunctionalInterface
  non-sealed interface Async extends Caller {
    /**
     * Starts a call. Exactly once, and on any thread, {@code done} gets null after the reply was checked, or what went
     * wrong. It goes on with the next call, and does not block.
     */
    void start(Done done) throws Exception;
  }

  /** Where an asynchronous call ends. */
  @FunctionalInterface
  interface Done {
    void end(Throwable failed);
  }
}
