package arena.load;

/** The command line is wrong: the program exits with code 2. */
public final class UsageException extends Exception {
  private static final long serialVersionUID = 1;

  public UsageException(String message) {
    super(message);
  }
}
