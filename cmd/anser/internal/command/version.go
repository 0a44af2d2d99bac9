package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/wire"
)

// versionReport is the output of --json.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Protocol int    `json:"protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  anser version --json",
		Args:    takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if asJSON {
				return printJSON(s.out, v)
			}
			_, err := fmt.Fprintln(s.out, versionLine())
			return err
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// versionLine returns the version as text.
func versionLine() string {
	v := version()
	revision := ""
	if v.Revision != "" {
		revision = " (" + v.Revision + ")"
	}
	return fmt.Sprintf("anser %s%s, protocol %d, %s, %s", v.Version, revision, v.Protocol, v.Go, v.Platform)
}

func version() versionReport {
	v := versionReport{
		Version: "development", Protocol: wire.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value[:min(len(s.Value), 12)]
		}
	}
	return v
}
