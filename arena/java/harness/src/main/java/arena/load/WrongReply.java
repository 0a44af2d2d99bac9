package arena.load;

/** A reply arrived and was not the right one. The load counts it as wrong and not as an error. */
public final class WrongReply extends Exception {
  private static final long serialVersionUID = 1;

  public WrongReply() {
    super("wrong reply", null, false, false);
  }
}
