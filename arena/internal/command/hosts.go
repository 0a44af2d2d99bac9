package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/hosts"
)

func newHosts(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "hosts",
		Short: "Create or remove two hosts on this machine",
		Long: `Create or remove two hosts on this machine: the network namespaces ` + hosts.Server + ` and
` + hosts.Client + `, connected by a virtual cable. "arena run --hosts 2" uses them; if they do not exist,
it creates and removes them itself. Both need root.`,
		Example: "  arena hosts up\n  arena hosts down",
		Args:    takes(0),
		RunE:    func(*cobra.Command, []string) error { return usagef("use arena hosts up or arena hosts down") },
	}
	c.AddCommand(&cobra.Command{
		Use:   "up",
		Short: "Create the two hosts",
		Args:  takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			made, err := hosts.Up(c.Context())
			if err != nil {
				return err
			}
			what := "already exist"
			if made {
				what = "are up"
			}
			fmt.Fprintf(s.out, "%s (%s) and %s (%s) %s\n", hosts.Server, hosts.ServerIP, hosts.Client, hosts.ClientIP, what)
			return nil
		},
	}, &cobra.Command{
		Use:   "down",
		Short: "Remove the two hosts",
		Args:  takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := hosts.Down(c.Context()); err != nil {
				return err
			}
			fmt.Fprintln(s.out, "no hosts remain")
			return nil
		},
	})
	return c
}
