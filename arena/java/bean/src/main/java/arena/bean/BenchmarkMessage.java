package arena.bean;

import java.io.Serializable;
import java.util.List;

/**
 * The message of say for encodings that take plain objects. A field is null where it is not set, and the repeated one
 * where it is empty.
 */
public final class BenchmarkMessage implements Serializable {
  private static final long serialVersionUID = 1;

  public String field1;
  public Integer field2;
  public Integer field3;
  public String field4;
  public List<Long> field5;
  public Integer field6;
  public String field7;
  public String field9;
  public Boolean field12;
  public Boolean field13;
  public Boolean field14;
  public Integer field16;
  public Boolean field17;
  public String field18;
  public Long field22;
  public Integer field23;
  public Boolean field24;
  public Integer field25;
  public Integer field29;
  public Boolean field30;
  public Boolean field59;
  public Integer field60;
  public Integer field67;
  public Integer field68;
  public Boolean field78;
  public Boolean field80;
  public Boolean field81;
  public Integer field100;
  public Integer field101;
  public String field102;
  public String field103;
  public Integer field104;
  public Integer field128;
  public String field129;
  public Integer field130;
  public Integer field131;
  public Integer field150;
  public Integer field271;
  public Integer field272;
  public Integer field280;
}
