package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
	"github.com/anser-rpc/anser/cmd/anser/internal/project"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
)

func newNew(s streams) *cobra.Command {
	var o project.Options
	var proto, inter bool
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a project with a service, a client and tests",
		Long: strings.TrimSpace(`
Make a Go module in a new folder: a service with a call, an idempotent call and a stream, its tests, a server that
announces itself in a registry, answers health probes and finishes its calls when it is stopped, and a client. The
contract between them is Go types, or with --proto a .proto file, or with --interface a Go interface.

The command runs "go mod tidy", which may download modules.
`),
		Example: strings.Trim(`
  anser new orders
  anser new orders --proto --module example.com/shop/orders
  anser new orders --interface`, "\n"),
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o.Name, o.Kind = args[0], project.Plain
			switch {
			case proto && inter:
				return usagef("--proto and --interface exclude each other")
			case proto:
				o.Kind = project.Proto
			case inter:
				o.Kind = project.Interface
			}
			if o.Replace != "" {
				whole, err := filepath.Abs(o.Replace)
				if err != nil {
					return err
				}
				o.Replace = whole
			}
			if o.Version = gen.Version(); o.Version == "development" {
				o.Version = "v0.0.0"
				if o.Replace == "" {
					o.Replace = checkout()
				}
				if o.Replace == "" {
					return usagef("this command is not a release: say with --replace in which folder Anser is")
				}
			}
			if err := o.Check(); err != nil {
				return &usageError{err}
			}
			folder, err := project.Make(c.Context(), ".", o)
			if err != nil {
				return err
			}
			screen.New(s.out).Print(
				fmt.Sprintf("%s is ready:", folder), "",
				"  cd "+folder,
				"  make test      # run the tests",
				"  make run       # run the server, and in a second terminal",
				"  make client    # call it",
			)
			return nil
		},
	}
	c.Flags().StringVar(&o.Module, "module", "", "import path of the module (default: NAME)")
	c.Flags().BoolVar(&proto, "proto", false, "write the contract as a .proto file")
	c.Flags().BoolVar(&inter, "interface", false, "write the contract as a Go interface")
	c.Flags().StringVar(&o.Replace, "replace", "", "folder with a clone of Anser to use in place of a release")
	return c
}

// checkout returns the folder of the clone that this command was built from, if it is on this
// machine, or "".
func checkout() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return ""
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module github.com/anser-rpc/anser\n") {
		return ""
	}
	return root
}
