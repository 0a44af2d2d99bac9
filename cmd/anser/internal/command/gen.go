package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
	"github.com/anser-rpc/anser/cmd/anser/internal/protofile"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
)

// genFile is the configuration that is read if the command has no arguments and the file exists.
const genFile = "anser.gen.yaml"

// genJob is one entry of the configuration, or the flags of the command.
type genJob struct {
	Inputs   []string `json:"inputs"`
	Imports  []string `json:"imports"`
	Out      string   `json:"out"`
	Separate bool     `json:"separate"`
	NoCodec  bool     `json:"no_codec"`
}

func newGen(s streams) *cobra.Command {
	var job genJob
	var check, watch bool
	var config string
	c := &cobra.Command{
		Use:   "gen [FILE | FOLDER | PATTERN]...",
		Short: "Generate Go code from contracts",
		Long: strings.TrimSpace(`
Generate typed clients, servers and messages from contracts: .proto files, the .fbs files of FlatBuffers, the .kiss and
.idl files of kiss-rpc, and Go interfaces with the comment //anser:service. Nothing else needs to be installed. A folder
means all contracts in it and below; without an argument it is the working directory, or what the file
`+genFile+` in it says.

The code of a .proto file goes into its folder, or with --out into the same folder below another one: NAME.pb.go with the
messages, as protoc-gen-go makes them, NAME.codec.go with the code that encodes and decodes them, and NAME.anser.go with
the services. A file without the option go_package gets the package of its folder. The files of google/protobuf can be
imported from anywhere, and so can

  `+strings.Join(protofile.BuiltIn(), "\n  ")+`

The code of a .fbs file goes into NAME.fbs.go, with the messages as flatc makes them with --go --gen-object-api, and
NAME.anser.go with the services. It is in the package of its folder, whatever the namespaces.

The code of interfaces in NAME.go goes into NAME.anser.go. Their methods have the shapes that Server.Register takes, and
those of streams: (ctx, in *A, out anser.Sender[B]) error, (ctx, in anser.Receiver[A]) (*B, error) and
(ctx, st *anser.Stream[B, A]) error. The comments //anser:oneway and //anser:idempotent above a method say more of it.

Only files whose content changes are written, and none if a contract has a mistake.

  `+genFile+` is for what would otherwise be several commands:

      - inputs: [api]             # files, folders and patterns
        imports: [api, third_party]
        out: internal/api
        separate: true            # services in packages of their own
`) + "\n\nExit codes: 0 all is generated; 1 a contract has a mistake, or with --check something is out of date; 2 wrong use.",
		Example: strings.Trim(`
  anser gen                              # all contracts here and below
  anser gen api/orders.proto -I api
  anser gen api --out internal/gen
  anser gen --check                      # for CI: fails if something is out of date
  anser gen --watch                      # again at every change`, "\n"),
		Args: takes(0, -1),
		RunE: func(c *cobra.Command, args []string) error {
			if check && watch {
				return usagef("--check and --watch exclude each other")
			}
			job.Inputs = args
			jobs, err := genJobs(job, config, c.Flags().Changed("config"))
			if err != nil {
				return err
			}
			if watch {
				return watchContracts(c.Context(), s, jobs)
			}
			return generate(c.Context(), s, jobs, check)
		},
	}
	c.Flags().StringArrayVarP(&job.Imports, "import", "I", nil, "folder relative to which files are imported; may be repeated (default: the working directory)")
	c.Flags().StringVar(&job.Out, "out", "", "folder for the code (default: that of the contract)")
	c.Flags().BoolVar(&job.Separate, "separate", false, "put services into a package of their own, such as ordersanser next to orders: for packages that also have the code of protoc-gen-go-grpc")
	c.Flags().BoolVar(&job.NoCodec, "no-codec", false, "leave out the code with which Anser encodes and decodes protobuf messages; the standard library does it then")
	c.Flags().BoolVar(&check, "check", false, "write nothing; fail if something is out of date")
	c.Flags().BoolVar(&watch, "watch", false, "generate again whenever a contract changes, until interrupted")
	c.Flags().StringVar(&config, "config", genFile, "file with what to generate")
	return c
}

// genJobs returns what to generate: what the arguments say, or the configuration.
func genJobs(job genJob, config string, chosen bool) ([]genJob, error) {
	if len(job.Inputs) > 0 {
		if chosen {
			return nil, usagef("--config and arguments exclude each other")
		}
		return []genJob{job}, nil
	}
	text, err := os.ReadFile(config)
	if errors.Is(err, fs.ErrNotExist) && !chosen {
		job.Inputs = []string{"."}
		return []genJob{job}, nil
	}
	if err != nil {
		return nil, usagef("read the configuration: %w", err)
	}
	if job.Out != "" || job.Separate || job.NoCodec || job.Imports != nil {
		return nil, usagef("%s says what to generate: put the flags there, or name the contracts as arguments", config)
	}
	var jobs []genJob
	if err := yaml.UnmarshalStrict(text, &jobs); err != nil {
		return nil, usagef("%s: %s: want a list of entries with inputs, imports, out and separate", config, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	if len(jobs) == 0 {
		return nil, usagef("%s is empty: list entries with inputs", config)
	}
	for i, j := range jobs {
		if len(j.Inputs) == 0 {
			return nil, usagef("%s: entry %d has no inputs", config, i+1)
		}
	}
	return jobs, nil
}

// outputs generates all jobs without writing anything.
func outputs(ctx context.Context, jobs []genJob) (*gen.Output, error) {
	all := new(gen.Output)
	for _, j := range jobs {
		out, err := gen.Generate(ctx, gen.Options{Inputs: j.Inputs, Imports: j.Imports, Out: j.Out, Separate: j.Separate, NoCodec: j.NoCodec})
		if err != nil {
			return nil, err
		}
		all.Add(out)
	}
	return all, all.Check()
}

var errOutOfDate = errors.New("generated code is out of date: run anser gen")

// generate writes the code once, or with check says what is out of date.
func generate(ctx context.Context, s streams, jobs []genJob, check bool) error {
	out, err := outputs(ctx, jobs)
	if err != nil {
		return err
	}
	var changes []gen.Change
	if check {
		changes, err = out.Changes()
	} else {
		changes, err = out.Write()
	}
	if err != nil {
		return err
	}
	p := screen.New(s.out)
	for _, c := range changes {
		p.Print(changeLine(c, check))
	}
	if len(changes) == 0 {
		p.Print(fmt.Sprintf("%d files are up to date.", len(out.Files)))
	}
	if check && len(changes) > 0 {
		return errOutOfDate
	}
	return nil
}

func changeLine(c gen.Change, check bool) string {
	switch {
	case check && c.New:
		return red.Render("missing ") + " " + c.Path
	case check && c.Remove:
		return red.Render("needless") + " " + c.Path
	case check:
		return red.Render("differs ") + " " + c.Path
	case c.New:
		return green.Render("new    ") + " " + c.Path
	case c.Remove:
		return yellow.Render("removed") + " " + c.Path
	}
	return green.Render("changed") + " " + c.Path
}

// watchInterval is the time between two looks at the contracts.
const watchInterval = 300 * time.Millisecond

// watchContracts generates whenever a contract changes.
func watchContracts(ctx context.Context, s streams, jobs []genJob) error {
	var seen string
	for {
		var watched []string
		for _, j := range jobs {
			watched = append(watched, gen.Watched(j.Inputs, j.Imports)...)
		}
		if now := stamps(watched); now != seen {
			seen = now
			if err := generate(ctx, s, jobs, false); err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.err, "anser: %v\n", err)
			}
		}
		select {
		case <-time.After(watchInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// stamps changes when one of the files does.
func stamps(files []string) string {
	var b strings.Builder
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(&b, file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
