package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/internal/sysusage"
)

// defaultConsole is where the console listens if nothing else is said.
const defaultConsole = "127.0.0.1:8980"

// prometheusTokenVariable has the bearer token for Prometheus, if it needs one.
const prometheusTokenVariable = "ANSER_PROMETHEUS_TOKEN"

// consoleFlags are the flags of "anser console".
type consoleFlags struct {
	registry  sourceFlags
	listen    string
	url       string
	cert, key string
	audit     string
	changes   bool
	login     loginFlags
	metrics   string // URL of a Prometheus
	arena     string
	also      []string // URLs of further registries
}

func newConsole(s streams) *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console [ADDRESS...]",
		Short: "Serve a page that shows a whole system, and changes it",
		Long: strings.TrimSpace(`
Serve a page that shows a whole system until interrupted: its services and their calls to each other, with rates, failures and
latencies; instances, methods, slow and failed calls, registries, and what has changed. It reads the admin pages of the
processes, which instances announce with the tag "admin", once a second while a browser shows the page and every ten
seconds otherwise, and keeps an hour in memory. An ADDRESS is an admin page that no instance announces, such as that of
a process that only calls. A page that needs a token gets the one in $` + adminTokenVariable + `.

With --audit, users can change instances, rules, canaries, faults and files of services, and call methods; the file records
all of it.

Without a login the console answers only this machine. A login is a file of users (--users, see "anser console user
add"), a provider of OpenID Connect (--oidc-issuer; its secret comes from --oidc-secret-file or $` + oidcSecretVariable + `), or both, or
else a proxy that names users in a header (--proxy-header). With a login the console may listen on any address: with TLS
(--tls-cert and --tls-key), or with --proxy-header also without. Other machines can change something only with
--allow-changes.

Exit codes: 0 interrupted; 1 the console failed; 2 wrong use.`),
		Example: strings.Trim(`
  anser console
  anser console 127.0.0.1:8971                   # with the page of a process that only calls
  anser console --registry consul://127.0.0.1:8500
  anser console --listen :8980 --users users.json --tls-cert cert.pem --tls-key key.pem
  anser console --listen :8980 --proxy-header X-Remote-User --proxy-from 10.0.0.5 --proxy-role look
  curl http://127.0.0.1:8980/api/system`, "\n"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	c.AddCommand(newConsoleAudit(s), newConsoleUser(s))
	f.registry.add(c)
	fs := c.Flags()
	fs.StringVar(&f.audit, "audit", "", "file to record changes in; nothing can be changed without it")
	fs.BoolVar(&f.changes, "allow-changes", false, "allow changes although other machines reach the console; needs --audit")
	fs.StringVar(&f.listen, "listen", defaultConsole, "address of the page; port 0 chooses a free one; one that other machines reach needs a login, and TLS except with --proxy-header")
	fs.StringVar(&f.url, "url", "", "URL at which browsers reach the console through a proxy, such as https://console.example.org/")
	fs.StringVar(&f.cert, "tls-cert", "", "PEM file with the certificate of the console; it is read again when it changes")
	fs.StringVar(&f.key, "tls-key", "", "PEM file with its key")
	fs.StringVar(&f.metrics, "prometheus", "", "URL of a Prometheus with the history before the last hour; its token is in $"+prometheusTokenVariable)
	fs.StringVar(&f.arena, "arena", "", "file with the report of the arena, in HTML, to which the page leads; it must be there at the start")
	fs.StringArrayVar(&f.also, "also", nil, "URL of a further registry whose services are shown; those of --registry alone are changed")
	f.login.add(c)
	return c
}

// run serves the console until ctx ends.
func (f *consoleFlags) run(ctx context.Context, s streams, pages []string) error {
	source, err := f.registry.source()
	if err != nil {
		return err
	}
	var list []site.Registry
	for _, at := range append([]string{f.registry.url}, f.also...) {
		reg, kind, err := openRegistry(target.Source{URL: at, Access: source.Access})
		if err != nil {
			return err
		}
		defer reg.Close()
		if _, err := reg.Store(); err != nil && f.audit != "" && len(list) == 0 {
			return &usageError{fmt.Errorf("--audit: %w", err)}
		}
		list = append(list, site.Registry{Name: at, Kind: kind, Resolver: reg.Resolver})
	}
	login, err := f.login.access(f.url)
	if err != nil {
		return err
	}
	c, err := site.Open(ctx, site.Options{
		Listen: f.listen, Certificate: f.cert, Key: f.key, URL: f.url, Access: login, Audit: f.audit, AllowChanges: f.changes,
		Registry: list[0], Also: list[1:], Pages: pages, Token: os.Getenv(adminTokenVariable),
		Prometheus: f.metrics, PrometheusToken: os.Getenv(prometheusTokenVariable), Arena: f.arena,
		Version: versionLine(), Dial: target.Caller(source), CPU: func() time.Duration { return time.Duration(sysusage.CurrentProcess().CPU) },
	})
	if err != nil {
		if wrong, ok := errors.AsType[*site.UsageError](err); ok {
			return &usageError{wrong}
		}
		return err
	}
	fmt.Fprintf(s.out, "console of %s at %s\n", strings.Join(append([]string{f.registry.url}, f.also...), ", "), c.URL())
	if c.Everywhere() {
		fmt.Fprintln(s.out, "It listens on all addresses of this machine.")
	}
	if trouble := c.ProviderTrouble(); trouble != nil {
		fmt.Fprintf(s.err, "%v\nUsers of --users can log in meanwhile; the provider is asked again at each login.\n", trouble)
	}
	return c.Serve(ctx)
}

// openRegistry opens a registry that can list its services.
func openRegistry(source target.Source) (reg *target.Registry, kind string, err error) {
	if reg, err = target.Open(source); err != nil {
		return nil, "", &usageError{err}
	}
	kind, _, err = target.Servers(source.URL)
	if err == nil && !reg.CanList() {
		err = usagef("%s cannot list services: the console needs a registry that can, such as etcd or consul", source.URL)
	}
	if err != nil {
		reg.Close()
		return nil, "", err
	}
	return reg, kind, nil
}
