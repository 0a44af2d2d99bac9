package arena.motan;

import com.weibo.api.motan.config.ProtocolConfig;

/** The protocol, which both sides set alike. */
final class Protocols {
  private Protocols() {}

  static ProtocolConfig of(String serialization) {
    ProtocolConfig protocol = new ProtocolConfig();
    protocol.setId("motan2");
    protocol.setName("motan2");
    protocol.setEndpointFactory("motan"); // that of Netty 4
    protocol.setSerialization(serialization);
    return protocol;
  }
}
