package gateway

// Config is the configuration of a gateway. The zero value serves all services of the registry.
type Config struct {
	// Services are the services of the registry that are served; none means all.
	Services []string `yaml:"services"`
}
