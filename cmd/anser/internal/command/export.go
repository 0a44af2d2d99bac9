package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/contract"
)

func newExport(s streams) *cobra.Command {
	var f contractFlags
	var out, descriptors string
	c := &cobra.Command{
		Use:   "export [FILE | FOLDER | PATTERN | TARGET]...",
		Short: "Write contracts as .proto files, for other languages",
		Long: strings.TrimSpace(`
Write what programs in other languages need to call services over gRPC or Connect: .proto files, from which protoc, buf
and others generate code. Contracts are files, folders and patterns as for "anser gen", or those of a running server, as
a TARGET of the other commands; without an argument they are those of the working directory.

A .proto file is copied, with the files that it imports; that of a running server is written from its descriptors.
Go interfaces, kiss-rpc's contracts, and methods of a running server without a contract get a .proto file whose messages
describe their types. The files import nothing but each other and those of google/protobuf, which all compilers have.

Files that were not exported are not overwritten, and none is written if a contract has a mistake.
`) + "\n\nExit codes: 0 all is exported; 1 a contract has a mistake, or the server cannot be asked; 2 wrong use.",
		Example: strings.Trim(`
  anser export --out proto                     # all contracts here and below
  anser export stock/stock.go --out proto
  anser export 127.0.0.1:8972 --out proto      # the services of a running server
  anser export orders --descriptors orders.binpb   # for grpcurl -protoset, buf, protoc`, "\n"),
		Args: takes(0, 1000),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" && descriptors == "" {
				return usagef("say where to: --out FOLDER for .proto files, --descriptors FILE for their descriptors")
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			e, err := f.export(c.Context(), args)
			if err != nil {
				return err
			}
			return writeExported(s, e, out, descriptors)
		},
	}
	f.add(c)
	c.Flags().StringVar(&out, "out", "", "folder for the .proto files")
	c.Flags().StringVar(&descriptors, "descriptors", "", "file for the compiled descriptors, a google.protobuf.FileDescriptorSet")
	return c
}

// export collects the contracts of the arguments: files, or one server.
func (f *contractFlags) export(ctx context.Context, args []string) (*gen.Exported, error) {
	_, err := os.Stat(args[0])
	switch {
	case err == nil || strings.ContainsAny(args[0], `/\*?[`) && !strings.Contains(args[0], "://"):
		return gen.Export(ctx, args, f.imports)
	case len(args) > 1:
		return nil, usagef("%s is not a file, and a server is exported by itself", args[0])
	}
	replies, err := f.askContracts(ctx, args[0], true)
	if err != nil {
		return nil, err
	}
	e := gen.NewExported()
	var plain []*contract.Schema
	var mistakes []error
	for _, r := range replies {
		if r.Schema.Kind == contract.Protobuf {
			mistakes = append(mistakes, e.AddDescriptors(r.Descriptors, r.Schema))
		} else {
			plain = append(plain, r.Schema)
		}
	}
	mistakes = append(mistakes, e.AddSchemas(plain...))
	return e, errors.Join(mistakes...)
}

func writeExported(s streams, e *gen.Exported, dir, descriptors string) error {
	for _, service := range e.LeftOut {
		fmt.Fprintf(s.err, "anser: %s is left out, since FlatBuffers have no form in protobuf: give its .fbs file to callers\n", service)
	}
	files := new(gen.Output)
	if dir != "" {
		files = e.Files(dir)
	}
	if descriptors != "" {
		data, err := e.Descriptors()
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(descriptors); err == nil && !gen.IsDescriptors(old) {
			return usagef("%s exists and has no descriptors: move it away, or choose another name", descriptors)
		}
		files.Files = append(files.Files, gen.File{Path: filepath.Clean(descriptors), Content: data, Source: "descriptors", Overwrite: true})
	}
	changes, err := files.Write()
	if err != nil {
		return err
	}
	p := screen.New(s.out)
	for _, c := range changes {
		p.Print(changeLine(c, false))
	}
	if len(changes) == 0 {
		p.Print("All files are up to date.")
	}
	return nil
}
