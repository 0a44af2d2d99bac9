package command

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/breaking"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
)

// contractFlags say where contracts are.
type contractFlags struct {
	registry sourceFlags
	tls      tlsFlags
	imports  []string
	timeout  time.Duration
	// typed are the servers whose contracts were made from their types.
	typed []string
}

func (f *contractFlags) add(c *cobra.Command) {
	f.registry.add(c)
	f.tls.add(c)
	c.Flags().StringArrayVarP(&f.imports, "import", "I", nil, "folder relative to which files are imported; may be repeated (default: the working directory)")
	timeoutFlag(c, &f.timeout, 5*time.Second, "how long to wait for a server")
}

// schemas are contracts, at most one of each kind.
type schemas map[contract.Kind]*contract.Schema

func newBreaking(s streams) *cobra.Command {
	var f contractFlags
	var level string
	var asJSON bool
	c := &cobra.Command{
		Use:   "breaking OLD NEW",
		Short: "Show what the changes of a contract break",
		Long: strings.TrimSpace(`
Compare two versions of contracts, and say of each change whether it breaks the wire (programs with the old and the new
contract misunderstand each other), JSON alone, or the source code that uses the generated types, and what to do instead.

OLD and NEW are each a file or folder with contracts; "git:REF" or "git:REF:FOLDER" for the files of a commit, branch or
tag of the repository of the working directory; or a server, as a TARGET of the other commands.
`) + "\n\nExit codes: 0 nothing is broken at --level or above; 1 something is, or the contracts cannot be read; 2 wrong use.",
		Example: strings.Trim(`
  anser breaking git:main .                    # in CI: what this branch breaks
  anser breaking git:v1.2.0:api api -I api
  anser breaking orders api/orders.proto       # what an update of the running service would break
  anser breaking old.proto new.proto --level wire`, "\n"),
		Args: takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			least := breaking.Level(level)
			if !slices.Contains([]breaking.Level{breaking.Wire, breaking.JSON, breaking.Source}, least) {
				return usagef("--level is %q: use wire, json or source", level)
			}
			before, err := f.load(c.Context(), args[0])
			if err != nil {
				return err
			}
			after, err := f.load(c.Context(), args[1])
			if err != nil {
				return err
			}
			if len(f.typed) > 0 && (before[contract.Go] == nil || after[contract.Go] == nil) {
				return fmt.Errorf("the server %s has no methods with a contract, and there is none in Go to compare its types with", f.typed[0])
			}
			return reportBreaking(s, compare(before, after), least, asJSON)
		},
	}
	f.add(c)
	c.Flags().StringVar(&level, "level", string(breaking.JSON), "fail for changes that break this or more: wire, json or source")
	jsonFlag(c, &asJSON)
	return c
}

// compare compares the contracts of each kind.
func compare(before, after schemas) []breaking.Change {
	var all []breaking.Change
	for _, kind := range slices.Sorted(maps.Keys(before)) {
		now := after[kind]
		if now == nil {
			now = &contract.Schema{Kind: kind}
		}
		all = append(all, breaking.Compare(before[kind], now)...)
	}
	return all
}

// breakingReport is the output of --json.
type breakingReport struct {
	Breaks  bool              `json:"breaks"` // at --level or above
	Changes []breaking.Change `json:"changes"`
}

var errBreaks = errors.New("the contract is broken")

func reportBreaking(s streams, changes []breaking.Change, least breaking.Level, asJSON bool) error {
	breaks := slices.ContainsFunc(changes, func(c breaking.Change) bool { return c.Level.AtLeast(least) })
	if asJSON {
		if changes == nil {
			changes = []breaking.Change{}
		}
		if err := printJSON(s.out, breakingReport{breaks, changes}); err != nil {
			return err
		}
	} else {
		printBreaking(s, changes)
	}
	if breaks {
		return &reportedError{errBreaks}
	}
	return nil
}

func printBreaking(s streams, changes []breaking.Change) {
	out := screen.New(s.out)
	if len(changes) == 0 {
		out.Print("The contracts are the same.")
		return
	}
	titles := map[breaking.Level]string{
		breaking.Wire: red.Render("BREAKS THE WIRE"), breaking.JSON: red.Render("BREAKS JSON"),
		breaking.Source: yellow.Render("BREAKS SOURCE CODE"), breaking.Fine: green.Render("FINE"),
	}
	var last breaking.Level
	for _, c := range changes {
		if c.Level != last {
			if last != "" {
				out.Print("")
			}
			out.Print(titles[c.Level])
			last = c.Level
		}
		at := ""
		if p := c.At.String(); p != "" {
			at = " (" + p + ")"
		}
		out.Print("  "+c.Path+at, "      "+c.Text)
	}
}

// load returns the contracts of one argument.
func (f *contractFlags) load(ctx context.Context, from string) (schemas, error) {
	if rest, ok := strings.CutPrefix(from, "git:"); ok {
		return f.loadGit(ctx, rest)
	}
	if _, err := os.Stat(from); err == nil {
		return gen.Schemas(ctx, []string{from}, f.imports)
	}
	if strings.ContainsAny(from, `/\*`) && !strings.Contains(from, "://") {
		return nil, usagef("there is no file %s", from)
	}
	return f.loadServer(ctx, from)
}

// loadServer asks a server for the contracts of its services.
func (f *contractFlags) loadServer(ctx context.Context, typed string) (schemas, error) {
	replies, err := f.askContracts(ctx, typed, false)
	if err != nil {
		return nil, err
	}
	out := make(schemas)
	for _, r := range replies {
		if all := out[r.Schema.Kind]; all != nil {
			all.Add(r.Schema)
		} else {
			out[r.Schema.Kind] = r.Schema
		}
	}
	return out, nil
}

// askContracts asks a server for the contracts of its services. With all, and if no service has
// one, those without a schema are among them: the server makes their contracts from their types.
func (f *contractFlags) askContracts(ctx context.Context, typed string, all bool) ([]anser.ContractReply, error) {
	methods, err := describe(ctx, typed, &f.registry, &f.tls, f.timeout)
	if err != nil {
		return nil, err
	}
	some := slices.ContainsFunc(methods, func(m anser.MethodInfo) bool { return m.Fingerprint != "" })
	var services []string
	for _, m := range methods {
		if service := m.Name[:strings.LastIndexByte(m.Name, '.')]; (m.Fingerprint != "" || all || !some) && !slices.Contains(services, service) {
			services = append(services, service)
		}
	}
	if len(services) == 0 {
		return nil, fmt.Errorf("the server %s has no methods", typed)
	}
	if !some {
		f.typed = append(f.typed, typed)
	}
	c, err := dial(ctx, typed, &f.registry, &f.tls, anser.Codec(new(codec.JSON)))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var replies []anser.ContractReply
	for _, service := range services {
		var reply anser.ContractReply
		err := callOnce(ctx, c, f.timeout, func(ctx context.Context, opts ...anser.CallOption) error {
			return c.Call(ctx, anser.ContractName, &anser.ContractRequest{Service: service}, &reply, opts...)
		})
		if anser.CodeOf(err) == anser.NotFound && len(services) > 1 {
			continue // its methods have protobuf messages, and no contract
		}
		if err != nil {
			return nil, fmt.Errorf("ask %s for the contract of %s: %w", typed, service, err)
		}
		if reply.Schema == nil {
			return nil, fmt.Errorf("the server %s gave no contract of %s", typed, service)
		}
		if err := reply.Schema.Check(); err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("the server %s has no methods with a contract", typed)
	}
	return replies, nil
}

// loadGit returns the contracts of "REF" or "REF:FOLDER" in the repository of the working
// directory. Its files are put into a temporary folder, since Go contracts need their module.
func (f *contractFlags) loadGit(ctx context.Context, from string) (schemas, error) {
	ref, path, _ := strings.Cut(from, ":")
	if ref == "" || strings.HasPrefix(ref, "-") {
		return nil, usagef("git:%s names no commit, branch or tag: use git:main or git:main:FOLDER", from)
	}
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	prefix, err := git(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	archive, err := git(ctx, "-C", strings.TrimSpace(string(top)), "archive", "--format=tar", ref)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "anser-breaking-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := unpack(archive, dir); err != nil {
		return nil, err
	}
	here := filepath.Join(dir, filepath.FromSlash(strings.TrimSpace(string(prefix))))
	input := filepath.Join(here, filepath.FromSlash(cmp.Or(path, ".")))
	if _, err := os.Stat(input); err != nil {
		return nil, usagef("%s has no %s", ref, cmp.Or(path, "such folder"))
	}
	imports := []string{here}
	if len(f.imports) > 0 {
		imports = nil
		for _, i := range f.imports {
			imports = append(imports, filepath.Join(here, i))
		}
	}
	return gen.Schemas(ctx, []string{input}, imports)
}

// git runs git and returns what it prints.
func git(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("git: %s", bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}

// unpack writes the files of an archive into a folder.
func unpack(archive []byte, dir string) error {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
}
