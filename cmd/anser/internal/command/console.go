package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/local"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/pagefiles"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// defaultConsole is where the console listens if nothing else is said.
const defaultConsole = "127.0.0.1:8980"

// consoleFlags are the flags of "anser console".
type consoleFlags struct {
	registry sourceFlags
	listen   string
	audit    string
}

func newConsole(s streams) *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console [ADDRESS...]",
		Short: "Serve a page that shows a whole system: which service calls which, and how it goes",
		Long: strings.TrimSpace(`
Serve a page that shows a whole system until interrupted: its services and their calls to each other, with rates, failures and
latencies; instances, methods, slow and failed calls, registries, and what has changed. It reads the admin pages of the
processes, which instances announce with the tag "admin", once a second while a browser shows the page and every ten
seconds otherwise, and keeps an hour in memory. An ADDRESS is an admin page that no instance announces, such as that of
a process that only calls. A page that needs a token gets the one in $` + adminTokenVariable + `.

The page changes nothing, has no login, and answers this machine alone. With --audit, programs on this machine can also
change instances, rules, canaries and faults below /api/, and call methods, and the file records each of them.

Exit codes: 0 interrupted; 1 the console failed; 2 wrong use.`),
		Example: strings.Trim(`
  anser console
  anser console 127.0.0.1:8971                   # with the page of a process that only calls
  anser console --registry consul://127.0.0.1:8500
  curl http://127.0.0.1:8980/api/system`, "\n"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	c.AddCommand(newConsoleAudit(s))
	f.registry.add(c)
	c.Flags().StringVar(&f.audit, "audit", "", "file that records changes, which are allowed with it")
	c.Flags().StringVar(&f.listen, "listen", defaultConsole, "loopback address of the page; port 0 chooses a free one")
	return c
}

// run serves the console until ctx ends.
func (f *consoleFlags) run(ctx context.Context, s streams, pages []string) error {
	reg, err := f.registry.open()
	if err != nil {
		return err
	}
	defer reg.Close()
	if !reg.CanList() {
		return usagef("%s cannot list services: the console needs a registry that can, such as etcd or consul", f.registry.url)
	}
	kind, _, err := target.Servers(f.registry.url)
	if err != nil {
		return err
	}
	l, err := local.Listen(f.listen)
	if err != nil {
		return &usageError{err}
	}
	o := console.Options{
		Registries: []collect.Source{{Name: f.registry.url, Kind: kind, Resolver: reg.Resolver}}, Pages: pages,
		Token: os.Getenv(adminTokenVariable), Guard: local.Guard, Page: local.Guard(pagefiles.Handler()),
	}
	var changes *changing
	if f.audit != "" {
		if changes, err = f.changing(ctx, reg); err != nil {
			l.Close()
			return err
		}
		defer changes.log.Close()
		o.Routes = changes.routes
	}
	c, err := console.New(o)
	if err != nil {
		l.Close()
		return err
	}
	if changes != nil {
		changes.console = c
		watching, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		wg.Go(func() { changes.Run(watching) })
	}
	fmt.Fprintf(s.out, "console of %s at http://%s/\n", f.registry.url, l.Addr())
	return serveConsole(ctx, c, l)
}

// serveConsole serves the console on l until ctx ends, and closes both.
func serveConsole(ctx context.Context, c *console.Console, l net.Listener) error {
	server := local.Server(c)
	stop := context.AfterFunc(ctx, func() {
		c.Close()
		server.Close()
	})
	err := server.Serve(l)
	if !stop() {
		c.Close() // waits for the other call
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return errors.Join(err, c.Close())
}
