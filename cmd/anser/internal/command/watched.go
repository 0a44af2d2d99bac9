package command

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/cmd/anser/internal/top"
)

// watchedFlags name the processes that a command watches by their admin pages.
type watchedFlags struct {
	registry sourceFlags
	timeout  time.Duration
}

// adminTokenVariable has the token of admin pages.
const adminTokenVariable = "ANSER_ADMIN_TOKEN"

func (f *watchedFlags) add(c *cobra.Command) {
	f.registry.add(c)
	timeoutFlag(c, &f.timeout, 3*time.Second, "how long the registry and an admin page may take to answer")
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionBound)
		defer cancel()
		return serviceNames(ctx, &f.registry), cobra.ShellCompDirectiveNoFileComp
	}
}

// errRedirect refuses to go where a page sends its reader: a registry names pages of others, and
// this machine may reach what they do not.
var errRedirect = errors.New("it sends its readers to another address, which is not an admin page's")

// watchedHelp says what the arguments are.
const watchedHelp = "An argument is the address of an admin page (http://127.0.0.1:8971/, 127.0.0.1:8971), or a service of the registry,\n" +
	"whose instances announce their pages with the tag \"admin\". Without arguments all services are watched. A page\n" +
	"that needs a token gets the one in $" + adminTokenVariable + "."

// reader returns a reader of admin pages. close closes its connections.
func (f *watchedFlags) reader() (r *admin.Reader, end func()) {
	client := &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
	return &admin.Reader{Client: client, Token: os.Getenv(adminTokenVariable)}, client.CloseIdleConnections
}

// finder returns a function that finds the processes, and one that closes what it uses.
func (f *watchedFlags) finder(args []string) (find func(context.Context) ([]top.Source, error), end func() error, err error) {
	var pages []top.Source
	var services []string
	for _, a := range args {
		if strings.Contains(a, "://") || strings.Contains(a, ":") {
			pages = append(pages, top.Source{Address: a})
		} else {
			services = append(services, a)
		}
	}
	if len(args) > 0 && len(services) == 0 {
		return func(context.Context) ([]top.Source, error) { return pages, nil }, func() error { return nil }, nil
	}
	r, err := f.registry.open()
	if err != nil {
		return nil, nil, err
	}
	if len(args) == 0 && !r.CanList() {
		r.Close()
		return nil, nil, usagef("%s cannot list services: name some, or the addresses of admin pages", f.registry.url)
	}
	return func(ctx context.Context) ([]top.Source, error) {
		found, err := list(ctx, &lsFlags{registry: f.registry, timeout: f.timeout}, r, services)
		if err != nil {
			return nil, err
		}
		all := append(slices.Clone(pages), announced(found)...)
		if len(all) == 0 {
			return nil, usagef("no instance in %s announces an admin page: give the addresses of pages, or announce instances with the tag %q", f.registry.url, admin.Tag)
		}
		return all, nil
	}, r.Close, nil
}

// announced returns the admin pages that instances announce, each once.
func announced(services []target.Service) (list []top.Source) {
	seen := make(map[string]bool)
	for _, s := range services {
		for _, in := range s.Instances {
			at := in.Tags[admin.Tag]
			if at == "" || seen[at] {
				continue
			}
			seen[at] = true
			list = append(list, top.Source{Address: at, Service: s.Name, Instance: cmp.Or(in.ID, in.Address)})
		}
	}
	return list
}
