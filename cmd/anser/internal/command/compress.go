package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress/all"
)

const compressHelp = "compress requests and replies: gzip, deflate, snappy, zstd or lz4 from 200 bytes on where it pays;\n" +
	"with \",forced\" after the name every message"

func compressFlag(c *cobra.Command, typed *string) {
	c.Flags().StringVar(typed, "compress", "none", compressHelp)
	cobra.CheckErr(c.RegisterFlagCompletionFunc("compress", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := []string{"none"}
		for _, z := range all.Compressors() {
			names = append(names, z.Name(), z.Name()+",forced")
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}))
}

// compression parses the flag --compress.
func compression(typed string) (anser.DialCallOption, error) {
	name, mode, given := strings.Cut(typed, ",")
	if given && mode != "forced" && mode != "dynamic" {
		return nil, usagef("--compress %s: the mode %q is not known: use forced or dynamic", typed, mode)
	}
	z, err := all.Named(name)
	if err != nil {
		return nil, usagef("--compress: %w", err)
	}
	if mode == "forced" {
		return anser.Compress(z, anser.Forced), nil
	}
	return anser.Compress(z), nil
}
