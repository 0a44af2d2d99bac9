package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/hosts"
)

func newHosts(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "hosts",
		Short: "Make two hosts out of this machine, or remove them",
		Long: `Make two hosts out of this machine, or remove them: network namespaces called ` + hosts.Server + ` and
` + hosts.Client + ` with a cable between them. "arena run --hosts 2" uses them, and makes and removes them by
itself when they are not there. Only root can do either.`,
		Example: "  arena hosts up\n  arena hosts down",
		Args:    takes(0),
		RunE:    func(*cobra.Command, []string) error { return usagef("say arena hosts up or arena hosts down") },
	}
	c.AddCommand(&cobra.Command{
		Use:   "up",
		Short: "Make the two hosts",
		Args:  takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			made, err := hosts.Up(c.Context())
			if err != nil {
				return err
			}
			what := "are there already"
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
			fmt.Fprintln(s.out, "no hosts are left")
			return nil
		},
	})
	return c
}
