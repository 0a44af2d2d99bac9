package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/filetransfer"
)

// fileFlags are the flags of the commands below "anser file".
type fileFlags struct {
	registry sourceFlags
	tls      tlsFlags
	follow   followFlags
	service  string
	timeout  time.Duration
	json     bool

	// for transfers
	resume    bool
	parents   bool
	noReplace bool
	crc       bool
	patience  time.Duration
}

func newFile(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "file",
		Short: "Send, fetch, list and remove files of a service that serves a folder",
		Long: "Send, fetch, list and remove files of a service that serves a folder with package filetransfer. Transfers continue after\n" +
			"their connection broke, and with --resume where an earlier command ended; a file appears when it is\n" +
			"complete and its checksum matches.\n" + exitHelp,
		Example: strings.Trim(`
  anser file put store report.pdf 2026/ --parents
  anser file get 127.0.0.1:8972 2026/report.pdf --resume
  anser file ls store 2026
  anser file rm store 2026/report.pdf`, "\n"),
	}
	return under(c, newFilePut(s), newFileGet(s), newFileLs(s), newFileRm(s))
}

// add adds the common flags.
func (f *fileFlags) add(c *cobra.Command) {
	c.ValidArgsFunction = completeTarget(&f.registry, &f.tls)
	f.registry.add(c)
	f.tls.add(c)
	f.follow.add(c)
	c.Flags().StringVar(&f.service, "service", "File", "name before the dot of the methods")
	jsonFlag(c, &f.json)
}

// addTransfer adds the flags of transfers.
func (f *fileFlags) addTransfer(c *cobra.Command) {
	f.add(c)
	c.Flags().BoolVar(&f.resume, "resume", false, "continue an earlier transfer of the same file, and keep the unfinished file for the next one")
	c.Flags().BoolVarP(&f.parents, "parents", "p", false, "create missing folders")
	c.Flags().BoolVar(&f.noReplace, "no-replace", false, "fail if the file exists")
	c.Flags().BoolVar(&f.crc, "crc32c", false, "check with CRC-32C, which is faster than SHA-256 and detects accidental errors only")
	c.Flags().DurationVar(&f.patience, "patience", time.Minute, "how long to retry without progress; 0 is until interrupted")
}

// addTimeout adds the flag of short commands.
func (f *fileFlags) addTimeout(c *cobra.Command) {
	f.add(c)
	timeoutFlag(c, &f.timeout, 5*time.Second, "timeout of the command")
}

// options returns the options of package filetransfer for the flags.
func (f *fileFlags) options() []filetransfer.Option {
	opts := []filetransfer.Option{filetransfer.Named(f.service), filetransfer.Patience(f.patience)}
	if f.resume {
		opts = append(opts, filetransfer.Resume())
	}
	if f.parents {
		opts = append(opts, filetransfer.Parents())
	}
	if f.noReplace {
		opts = append(opts, filetransfer.NoReplace())
	}
	if f.crc {
		opts = append(opts, filetransfer.CRC32C)
	}
	return opts
}

// with calls do with a client.
func (f *fileFlags) with(ctx context.Context, typed string, do func(ctx context.Context, c *anser.Client) error) error {
	if f.service == "" {
		return usagef("--service is empty: give the name before the dot of the methods, such as File")
	}
	if f.patience < 0 {
		return usagef("--patience must not be negative")
	}
	opts, err := f.follow.options(typed, &f.registry)
	if err != nil {
		return err
	}
	c, err := dial(ctx, typed, &f.registry, &f.tls, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	err = do(ctx, c)
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Code == anser.Unimplemented && e.Outcome == anser.Refused {
		return fmt.Errorf("%w\n\"anser describe %s\" lists the methods: the service may have another name (--service), or not allow this", err, typed)
	}
	return err
}

func newFilePut(s streams) *cobra.Command {
	var f fileFlags
	c := &cobra.Command{
		Use:   "put TARGET LOCAL [REMOTE]",
		Short: "Send a file",
		Long: "Send a file. REMOTE is its path below the folder of the server; without it, or if it ends with a slash, the\n" +
			"file keeps its name.",
		Example: strings.Trim(`
  anser file put store report.pdf
  anser file put store report.pdf 2026/may.pdf --parents
  anser file put tls://files.example.org:443 backup.tar backups/ --resume --patience 1h`, "\n"),
		Args: takes(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			remote := ""
			if len(args) > 2 {
				remote = args[2]
			}
			if remote == "" || strings.HasSuffix(remote, "/") {
				remote += filepath.Base(args[1])
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, client *anser.Client) error {
				return f.transfer(s, args[1], func(opts ...filetransfer.Option) (filetransfer.Result, error) {
					return filetransfer.Put(ctx, client, args[1], remote, opts...)
				})
			})
		},
	}
	f.addTransfer(c)
	return c
}

func newFileGet(s streams) *cobra.Command {
	var f fileFlags
	c := &cobra.Command{
		Use:   "get TARGET REMOTE [LOCAL | -]",
		Short: "Fetch a file",
		Long: "Fetch a file. Without LOCAL, or if that is a folder, it keeps its name; - writes it to the standard output,\n" +
			"where it is verified only if the command exits with 0.",
		Example: strings.Trim(`
  anser file get store 2026/report.pdf
  anser file get store 2026/report.pdf may.pdf --no-replace
  anser file get store backups/backup.tar - | tar t`, "\n"),
		Args: takes(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			local := path.Base(args[1])
			if len(args) > 2 {
				local = args[2]
			}
			if info, err := os.Stat(local); err == nil && info.IsDir() {
				local = filepath.Join(local, path.Base(args[1]))
			}
			if local == "-" && (f.json || f.resume) {
				return usagef("--json and --resume do not go together with the standard output: name a file")
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, client *anser.Client) error {
				if local == "-" {
					_, err := filetransfer.GetTo(ctx, client, args[1], s.out, f.options()...)
					return err
				}
				return f.transfer(s, args[1], func(opts ...filetransfer.Option) (filetransfer.Result, error) {
					return filetransfer.Get(ctx, client, args[1], local, opts...)
				})
			})
		},
	}
	f.addTransfer(c)
	return c
}

// transferReport is the output of --json.
type transferReport struct {
	filetransfer.Result
	Checksum string  `json:"checksum"`
	Seconds  float64 `json:"seconds"`
}

// transfer runs a transfer, and shows its progress on a terminal.
func (f *fileFlags) transfer(s streams, name string, run func(opts ...filetransfer.Option) (filetransfer.Result, error)) error {
	opts := f.options()
	out := screen.New(s.err)
	if out.Terminal() && !f.json {
		opts = append(opts, filetransfer.OnProgress(func(p filetransfer.Progress) {
			width, _ := out.Size()
			out.Draw(nil, []string{progressLine(name, p, width)})
		}))
	}
	began := time.Now()
	r, err := run(opts...)
	took := time.Since(began)
	if out.Terminal() {
		out.Draw(nil, nil) // removes the bar
	}
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(s.out, transferReport{r, r.Checksum.String(), took.Seconds()})
	}
	line := fmt.Sprintf("%s  %s in %s  %v %s", r.Path, byteCount(r.Size), table.Duration(took), r.Checksum, r.Sum)
	if r.Resumed > 0 {
		line += fmt.Sprintf("  resumed at %s", byteCount(r.Resumed))
	}
	if r.Breaks > 0 {
		line += fmt.Sprintf("  interrupted %d times", r.Breaks)
	}
	_, err = fmt.Fprintln(s.out, line)
	return err
}

// progressLine returns the progress of a transfer, as wide as the terminal. It uses no library for
// progress bars: these have a goroutine and a ticker that write to the terminal by themselves
// (mpb, as in the arena) or run the whole program (bubbletea), while a transfer reports its
// progress here, and Screen draws, truncates and erases the lines of all commands in the same way.
func progressLine(name string, p filetransfer.Progress, width int) string {
	share := 1.0
	if p.Total > 0 {
		share = float64(p.Done) / float64(p.Total)
	}
	figures := fmt.Sprintf("%3.0f %%  %s of %s  %s/s", share*100, byteCount(p.Done), byteCount(p.Total), byteCount(int64(p.Rate)))
	if p.Rate >= 1 && p.Done < p.Total {
		left := time.Duration(float64(p.Total-p.Done) / p.Rate * float64(time.Second)).Round(time.Second)
		figures += "  " + left.String() + " left"
	}
	const leastBar, mostBar = 10, 40
	bar := min(width-len(name)-len(figures)-6, mostBar)
	if bar < leastBar {
		return name + "  " + figures
	}
	full := int(share * float64(bar))
	return name + "  " + strings.Repeat("█", full) + strings.Repeat("░", bar-full) + "  " + figures
}

// byteCount formats a number of bytes in a suitable unit.
func byteCount(n int64) string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; f >= 999.5 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", f, units[i])
}

func newFileLs(s streams) *cobra.Command {
	var f fileFlags
	c := &cobra.Command{
		Use:   "ls TARGET [FOLDER]",
		Short: "List the contents of a folder",
		Long:  "List the contents of a folder, sorted by name. A folder's name ends with a slash; an entry that is neither a file nor a folder has no size.",
		Example: strings.Trim(`
  anser file ls store
  anser file ls store 2026 --json | jq -r '.[].path'`, "\n"),
		Args: takes(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 1 {
				dir = args[1]
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, client *anser.Client) error {
				return f.ls(ctx, s, client, dir)
			})
		},
	}
	f.addTimeout(c)
	return c
}

func (f *fileFlags) ls(ctx context.Context, s streams, c *anser.Client, dir string) error {
	list := []filetransfer.Info{}
	for info, err := range filetransfer.List(ctx, c, dir, filetransfer.Named(f.service)) {
		if err != nil {
			return err
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b filetransfer.Info) int { return strings.Compare(a.Path, b.Path) })
	if f.json {
		return printJSON(s.out, list)
	}
	t := table.Table{Columns: []table.Column{{Title: "NAME"}, {Title: "SIZE", Right: true}, {Title: "CHANGED"}}}
	for _, info := range list {
		name, size := path.Base(info.Path), byteCount(info.Size)
		if info.Dir {
			name, size = name+"/", ""
		} else if info.Other {
			size = ""
		}
		t.Add(name, size, info.ModTime.Local().Format(time.DateTime))
	}
	out := screen.New(s.out)
	width, _ := out.Size()
	out.Print(t.Lines(width)...)
	return nil
}

func newFileRm(s streams) *cobra.Command {
	var f fileFlags
	c := &cobra.Command{
		Use:   "rm TARGET PATH...",
		Short: "Remove files and empty folders",
		Long:  "Remove files and empty folders, if the server allows it. It stops at the first one that cannot be removed.",
		Example: strings.Trim(`
  anser file rm store 2026/report.pdf
  anser file rm store 2026/may.pdf 2026`, "\n"),
		Args: takes(2, -1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c.Context(), args[0], func(ctx context.Context, client *anser.Client) error {
				removed := []string{}
				for _, p := range args[1:] {
					if err := filetransfer.Remove(ctx, client, p, filetransfer.Named(f.service)); err != nil {
						return err
					}
					removed = append(removed, p)
				}
				if f.json {
					return printJSON(s.out, map[string][]string{"removed": removed})
				}
				return nil
			})
		},
	}
	f.addTimeout(c)
	return c
}
