package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/introspect"
)

func newDescribe(s streams) *cobra.Command {
	var source sourceFlags
	var secure tlsFlags
	var timeout time.Duration
	var asJSON bool
	var contracts, imports []string
	c := &cobra.Command{
		Use:   "describe TARGET [METHOD]",
		Short: "Show what a server serves, with examples in JSON",
		Long: "Show the methods of a server, or one of them, with the comment of its contract, and an example of its request and its\n" +
			"reply in JSON. With --contract, the methods are compared with files: those that a client is built from.\n" + exitHelp,
		Example: strings.Trim(`
  anser describe arith
  anser describe 127.0.0.1:8972 Arith.Mul
  anser describe orders --contract api/orders.proto`, "\n"),
		Args:              takes(1, 2),
		ValidArgsFunction: completeTarget(&source, &secure),
		RunE: func(c *cobra.Command, args []string) error {
			methods, err := describe(c.Context(), args[0], &source, &secure, timeout)
			if err != nil {
				return err
			}
			if len(contracts) > 0 {
				if len(args) > 1 {
					return usagef("--contract is about all methods: leave %s out", args[1])
				}
				return showDifferences(c.Context(), s, args[0], methods, contracts, imports)
			}
			if len(args) == 1 {
				if asJSON {
					return printJSON(s.out, anser.MethodList{Methods: append([]anser.MethodInfo{}, methods...)}) // not null
				}
				listMethods(s, methods)
				return nil
			}
			m, err := findMethod(methods, args[1])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, m)
			}
			showMethod(s, args[0], args[1], m)
			return nil
		},
	}
	source.add(c)
	secure.add(c)
	timeoutFlag(c, &timeout, 5*time.Second, "how long to wait for the server")
	jsonFlag(c, &asJSON)
	c.Flags().StringArrayVar(&contracts, "contract", nil, "file or folder with contracts to compare the methods with; may be repeated")
	c.Flags().StringArrayVarP(&imports, "import", "I", nil, "folder relative to which the files of --contract are imported; may be repeated (default: the working directory)")
	return c
}

var errDiffers = errors.New("the contracts differ")

// showDifferences prints how the methods of a server differ from the contracts in files, and fails
// if they do.
func showDifferences(ctx context.Context, s streams, typed string, methods []anser.MethodInfo, files, imports []string) error {
	differ, err := differences(ctx, methods, files, imports)
	if err != nil {
		return err
	}
	out := screen.New(s.out)
	if len(differ) == 0 {
		out.Print("The contracts are the same.")
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(differ)) {
		out.Print(fair.Render(name) + ": " + differ[name])
	}
	out.Print("", fmt.Sprintf(`"anser breaking %s %s" shows what the differences break.`, files[0], typed))
	return &reportedError{errDiffers}
}

// describe asks a server for its methods.
func describe(ctx context.Context, typed string, source *sourceFlags, secure *tlsFlags, timeout time.Duration) ([]anser.MethodInfo, error) {
	c, err := dial(ctx, typed, source, secure, anser.Codec(new(codec.JSON)))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var list anser.MethodList
	err = callOnce(ctx, c, timeout, func(ctx context.Context, opts ...anser.CallOption) error {
		return c.Call(ctx, anser.MethodsName, new(anser.None), &list, opts...)
	})
	if e, ok := err.(*anser.Error); ok {
		if e.Code == anser.Unimplemented {
			return nil, fmt.Errorf("%w\nthe server does not describe its methods: its option anser.NoDescribe forbids it", e)
		}
		return nil, explain(c, e)
	}
	return list.Methods, err
}

func findMethod(methods []anser.MethodInfo, name string) (*anser.MethodInfo, error) {
	var names []string
	for i, m := range methods {
		if m.Name == name || slices.Contains(m.Aliases, name) {
			return &methods[i], nil
		}
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no method %q: the server has none", name)
	}
	return nil, fmt.Errorf("there is no method %q: the server has %s", name, strings.Join(names, ", "))
}

// listMethods prints a line per method.
func listMethods(s streams, methods []anser.MethodInfo) {
	out := screen.New(s.out)
	if len(methods) == 0 {
		out.Print("The server has no methods.")
		return
	}
	t := table.Table{Columns: []table.Column{{Title: "METHOD"}, {Title: "KIND"}, {Title: "IDEMPOTENT"}, {Title: "REQUEST"}, {Title: "REPLY"}}}
	for _, m := range methods {
		idempotent := "no"
		if m.Idempotent {
			idempotent = "yes"
		}
		kind := "call"
		if m.Stream {
			kind = introspect.StreamKind(&m)
		}
		names := append([]string{m.Name}, m.Aliases...)
		reply := shortened(m.Reply.JSON)
		if m.Oneway {
			reply = "none: oneway"
		}
		t.Add(strings.Join(names, ", "), kind, idempotent, shortened(m.Request.JSON), reply)
	}
	width, _ := out.Size()
	out.Print(t.Lines(width)...)
}

// shortened is an example in a table: "anser describe TARGET METHOD" shows all of it.
func shortened(text []byte) string { return ansi.Truncate(spaced(text), longestExample, "…") }

const longestExample = 48

// showMethod prints one method in full, and how to call it.
func showMethod(s streams, typed, name string, m *anser.MethodInfo) {
	lines := []string{m.Name}
	if len(m.Aliases) > 0 {
		lines = append(lines, "also called "+strings.Join(m.Aliases, ", "))
	}
	if m.Doc != "" {
		lines = append(lines, "")
		lines = append(lines, strings.Split(m.Doc, "\n")...)
		lines = append(lines, "")
	}
	if m.Contract != "" {
		lines = append(lines, fmt.Sprintf("contract: %s, with the fingerprint %s", m.Contract, m.Fingerprint))
	}
	if m.Deprecated {
		lines = append(lines, "deprecated")
	}
	if m.Idempotent {
		lines = append(lines, "idempotent: a call whose outcome is unknown is sent again")
	}
	lines = append(lines, "", "request "+m.Request.Type)
	lines = append(lines, strings.Split(indentJSON(m.Request.JSON), "\n")...)
	oneway := ""
	if m.Oneway {
		oneway = " --oneway"
		lines = append(lines, "", "oneway: there is no reply, and a message arrives at most once")
	} else {
		lines = append(lines, "", "reply "+m.Reply.Type)
		lines = append(lines, strings.Split(indentJSON(m.Reply.JSON), "\n")...)
	}
	if m.Stream {
		lines = append(lines, "", map[string]string{
			"server stream": "server stream: there is one request, and any number of replies",
			"client stream": "client stream: there is any number of requests, and one reply",
			"stream":        "stream: request and reply are those of one message, and there may be any number of both",
		}[introspect.StreamKind(m)])
	}
	lines = append(lines, "", fmt.Sprintf("anser call%s %s %s '%s'", oneway, typed, name, spaced(m.Request.JSON)))
	screen.New(s.out).Print(lines...)
}

// spaced returns JSON in one line with a space after each colon and comma.
func spaced(text []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", ""); err != nil {
		return string(text)
	}
	r := strings.NewReplacer(",\n", ", ", "{\n", "{", "[\n", "[", "\n", "")
	return r.Replace(b.String())
}
