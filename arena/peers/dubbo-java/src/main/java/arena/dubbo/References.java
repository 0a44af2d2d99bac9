package arena.dubbo;

import arena.load.Address;
import java.util.HashMap;
import java.util.Map;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.rpc.model.ModuleModel;

/** Makes references that have a connection of their own each. */
final class References {
  private static final int TIMEOUT_MILLIS = 60_000;

  private final String protocol;
  private final boolean async;
  private final ModuleModel shared;

  References(String protocol, boolean async) {
    this.protocol = protocol;
    this.async = async;
    shared = protocol.equals("tri") ? null : Models.module();
  }

  /**
   * Returns where a reference belongs to. Triple shares one connection to an address among all references of a model
   * and has no setting for more, so that each connection needs a model there.
   */
  ModuleModel module() {
    return shared == null ? Models.module() : shared;
  }

  /** Returns a reference whose get connects and whose destroy closes the connection. */
  <T> ReferenceConfig<T> to(Class<T> service, Address address, ModuleModel module) {
    ReferenceConfig<T> reference = new ReferenceConfig<>(module);
    reference.setInterface(service);
    reference.setUrl(protocol + "://" + address + "/" + service.getName());
    reference.setTimeout(TIMEOUT_MILLIS);
    reference.setRetries(0); // an error is counted and not tried again
    Map<String, String> parameters = new HashMap<>();
    parameters.put("connect.timeout", Integer.toString(TIMEOUT_MILLIS));
    if (protocol.equals("dubbo")) {
      reference.setConnections(1);
      parameters.put("serialization", Services.SERIALIZATION);
      if (async) {
        reference.setAsync(true);
        parameters.put("dispatcher", "direct"); // replies are decoded where they are read
      }
    }
    reference.setParameters(parameters);
    return reference;
  }
}
