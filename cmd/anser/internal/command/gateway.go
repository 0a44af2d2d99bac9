package command

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/mcp"
	"github.com/anser-rpc/anser/registry"
)

// defaultGateway is where "anser gateway" listens if nothing else is said.
const defaultGateway = "127.0.0.1:8080"

// defaultTraced is the share of the calls that are traced without --traced.
const defaultTraced = 0.01

// gatewayFlags are the flags of "anser gateway".
type gatewayFlags struct {
	registry sourceFlags
	listen   string
	document string
	admin    string
	public   bool
	traced   float64
	verbose  bool
}

func newGateway(s streams) *cobra.Command {
	var f gatewayFlags
	c := &cobra.Command{
		Use:   "gateway [FILE]",
		Short: "Run a gateway: one port for all services of a registry, in all protocols except net/rpc's gob",
		Long: strings.TrimSpace(`
Run a gateway until interrupted. Calls in gRPC, gRPC-Web, Connect, JSON over HTTP, JSON-RPC and WebSocket come in on one
port, and go on to the services of the registry. It asks their instances what they serve, so it needs no configuration:
POST /arith/Arith.Mul calls the method Arith.Mul of the service arith.

FILE is a configuration in YAML: routes by host, path, header and share, to services, groups, versions and servers of
HTTP; TLS, identities, limits, tools for agents. docs/gateway.md has all of it. With --document NAME the configuration is the one that
"anser gateway put" has put into the registry. A changed configuration is in force at once, without losing a request;
SIGHUP reads the file again. One with a mistake is refused, and the old one stays.

Spans and metrics go to the collector of OpenTelemetry in OTEL_EXPORTER_OTLP_ENDPOINT (http://127.0.0.1:4318), if there
is one.

SIGTERM ends it: calls that run may end, for 30 s.

Exit codes: 0 interrupted; 1 the gateway failed; 2 wrong use, or a mistake in the configuration.`),
		Example: strings.Trim(`
  anser gateway
  anser gateway edge.yaml --listen 0.0.0.0:443
  anser gateway edge.yaml --admin 127.0.0.1:8971   # and anser top 127.0.0.1:8971
  anser gateway check edge.yaml
  anser gateway diff edge.yaml new.yaml
  anser gateway put edge edge.yaml && anser gateway --document edge
  curl http://127.0.0.1:8080/arith/Arith.Mul -d '{"A": 7, "B": 8}'`, "\n"),
		Args: takes(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			return f.run(c.Context(), s, file)
		},
	}
	f.registry.add(c)
	c.Flags().StringVar(&f.listen, "listen", "", "address of the port, in place of the one in the configuration (default "+defaultGateway+")")
	c.Flags().StringVar(&f.document, "document", "", "name of a configuration in the registry, in place of a FILE")
	c.Flags().StringVar(&f.admin, "admin", "", "address of an admin page with metrics, such as 127.0.0.1:8971; it asks for the token in $"+adminTokenVariable+", if there is one (default none)")
	c.Flags().Float64Var(&f.traced, "traced", defaultTraced, "share of the calls whose traces go to the collector in $OTEL_EXPORTER_OTLP_ENDPOINT, besides failed and slow ones")
	c.Flags().BoolVar(&f.public, "insecure-public", false, "listen on addresses other than loopback without TLS or without authentication")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "log each change, and not only what went wrong")
	c.AddCommand(newGatewayCheck(s), newGatewayDiff(s), newGatewayPut(s), newGatewayShow(s))
	return c
}

// run runs the gateway until ctx ends.
func (f *gatewayFlags) run(ctx context.Context, s streams, file string) error {
	if file != "" && f.document != "" {
		return usagef("the configuration is FILE or --document, and not both")
	}
	reg, err := f.registry.open()
	if err != nil {
		return err
	}
	defer reg.Close()
	if err := target.Reach(ctx, f.registry.url); err != nil {
		return err
	}
	config, store, err := f.config(ctx, reg, file)
	if err != nil {
		return err
	}
	config.Listen = cmp.Or(f.listen, config.Listen, defaultGateway)
	log := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: f.level(config)}))
	opts := gateway.Options{Registry: reg.Resolver, Logger: log, Tools: gatewayTools, Server: []anser.ServerOption{anser.NoSignals()}}
	if f.public {
		opts.Server = append(opts.Server, anser.ServerOptionsOf("flag --insecure-public", anser.InsecurePublic()))
	}
	w, err := f.watch(&opts, log, s.out)
	if err != nil {
		return err
	}
	defer w.end()
	g, err := gateway.New(config, opts)
	if err != nil {
		return &usageError{err}
	}
	w.stats.of.Store(g)
	l, err := g.Server().Listen(config.Listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "gateway of %s at %s\n%s\n", f.registry.url, l.Addr(), curlLine(config, l.Addr()))
	if config.MCP != nil {
		fmt.Fprintf(s.out, "tools for agents at %s/mcp\n", baseOf(config, l.Addr()))
	}
	following, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	switch {
	case file != "":
		again := make(chan os.Signal, 1)
		signal.Notify(again, syscall.SIGHUP)
		defer signal.Stop(again)
		wait.Go(func() { g.FollowFile(following, file, again) })
	case f.document != "":
		wait.Go(func() { g.FollowDocument(following, store, f.document) })
	}
	return g.Serve(ctx, l)
}

// level returns what is logged.
func (f *gatewayFlags) level(c *gateway.Config) slog.Level {
	if f.verbose || c.AccessLog != nil {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// gatewayTools returns what offers methods as tools. Package gateway does not contain it: the SDK
// of the protocol would be a dependency of every program with a gateway.
func gatewayTools(m gateway.MCP) http.Handler {
	return mcp.New(mcp.Options{Allow: m.Allow, Compact: m.Compact, Resources: m.Resources, Version: version().Version})
}

// curlLine is a line that calls a service through the gateway.
func curlLine(c *gateway.Config, at net.Addr) string {
	return fmt.Sprintf("curl %s/SERVICE/Service.Method -d '{}'", baseOf(c, at))
}

func baseOf(c *gateway.Config, at net.Addr) string {
	if c.TLS != nil {
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// config returns the configuration, and the registry as a store if it comes from there.
func (f *gatewayFlags) config(ctx context.Context, reg *target.Registry, file string) (c *gateway.Config, store registry.Store, err error) {
	switch {
	case file != "":
		c, err = gateway.Load(file)
	case f.document != "":
		if store, err = reg.Store(); err != nil {
			return nil, nil, &usageError{err}
		}
		var text []byte
		if text, err = loadGateway(ctx, store, f.document); err == nil {
			c, err = gateway.Parse(f.document, text)
		}
	default:
		c = new(gateway.Config)
	}
	if err != nil {
		return nil, nil, &usageError{err}
	}
	return c, store, nil
}

func loadGateway(ctx context.Context, store registry.Store, name string) ([]byte, error) {
	text, _, ok, err := gateway.LoadDocument(ctx, store, name)
	if err == nil && !ok {
		err = fmt.Errorf("the registry has no configuration %q: put one there with anser gateway put %s FILE", name, name)
	}
	return text, err
}
