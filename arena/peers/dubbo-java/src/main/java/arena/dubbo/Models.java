package arena.dubbo;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.rpc.model.ApplicationModel;
import org.apache.dubbo.rpc.model.FrameworkModel;
import org.apache.dubbo.rpc.model.ModuleModel;

/** What Dubbo keeps for a program: without a registry, a console, or other ports. */
final class Models {
  private Models() {}

  static ModuleModel module() {
    ApplicationModel application = new FrameworkModel().newApplication();
    ApplicationConfig config = new ApplicationConfig(application, "arena");
    config.setQosEnable(false);
    config.setRegisterMode("interface"); // without the metadata service, which takes a port of its own
    application.getApplicationConfigManager().setApplication(config);
    return application.newModule();
  }
}
