package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/route"
)

// explainFlags are the flags of "anser explain".
type explainFlags struct {
	registry sourceFlags
	tls      tlsFlags
	timeout  time.Duration
	json     bool
	metadata []string
	caller   callerFlags
	from     string
}

func newExplain(s streams) *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain SERVICE METHOD",
		Short: "Show to which instance a call would go, and why not to the others",
		Long: "Show to which instance a call would go: which rules match, what they leave, which instances are left out and\n" +
			"why, and what the balancer picks. The command answers for a client that has just started and has no measurements;\n" +
			"with --from it asks a running client, in a process that serves route.ServeExplain.\n" +
			"\nExit codes: 0 there is an instance for the call; 1 something failed; 2 wrong use; 3 no instance is left.",
		Example: strings.Trim(`
  anser explain arith Arith.Mul
  anser explain arith Arith.Mul -H user:7 --caller-zone north --caller-tag team=red
  anser explain arith Arith.Mul --from 127.0.0.1:9000`, "\n"),
		Args:              takes(2, 2),
		ValidArgsFunction: completeTarget(&f.registry, &f.tls),
		RunE: func(c *cobra.Command, args []string) error {
			x, err := f.explain(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if f.json {
				err = printJSON(s.out, x)
			} else {
				showExplanation(s, x)
			}
			if err == nil && x.Error != "" {
				err = &reportedError{&anser.Error{Code: anser.Unavailable, Outcome: anser.NotSent, Message: x.Error}}
			}
			return err
		},
	}
	f.registry.add(c)
	f.tls.add(c)
	timeoutFlag(c, &f.timeout, 5*time.Second, "how long to wait for the registry, or for --from")
	c.Flags().StringArrayVarP(&f.metadata, "header", "H", nil, "metadata of the call, as key:value; may be repeated")
	f.caller.add(c)
	c.Flags().StringVar(&f.from, "from", "", "process whose client is asked")
	jsonFlag(c, &f.json)
	return c
}

func (f *explainFlags) explain(ctx context.Context, typed, method string) (*anser.Explanation, error) {
	md, err := parseMetadata(f.metadata)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if f.from != "" {
		return f.ask(ctx, route.ExplainRequest{Service: typed, Method: method, Metadata: md})
	}
	opts, err := f.caller.options(typed, &f.registry)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, typed, &f.registry, &f.tls, opts...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Explain(anser.WithMetadata(ctx, md), method)
}

// ask asks a running process.
func (f *explainFlags) ask(ctx context.Context, q route.ExplainRequest) (*anser.Explanation, error) {
	c, err := dial(ctx, f.from, &f.registry, &f.tls, anser.Codec(new(codec.JSON)))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	x := new(anser.Explanation)
	err = callOnce(ctx, c, f.timeout, func(ctx context.Context, opts ...anser.CallOption) error {
		return c.Call(ctx, route.ExplainMethod, &q, x, opts...)
	})
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Code == anser.Unimplemented {
		return nil, fmt.Errorf("%w\n%s does not explain its calls: it must serve route.ServeExplain", e, f.from)
	}
	return x, err
}

func showExplanation(s streams, x *anser.Explanation) {
	out := screen.New(s.out)
	width, _ := out.Size()
	rules := "none"
	switch {
	case x.RulesNotFollowed:
		rules = yellow.Render("not followed: the client lacks the option route.Rules")
	case x.Version > 0:
		rules = "version " + strconv.FormatUint(x.Version, 10)
	}
	lines := []string{
		"call      " + x.Method + " of " + x.Target,
		"rules     " + rules,
	}
	if x.Trouble != "" {
		lines = append(lines, "          "+yellow.Render("newer rules cannot be used: "+x.Trouble))
	}
	for _, p := range x.Policies {
		lines = append(lines, "          "+p)
	}
	for _, f := range x.Filters {
		what := fmt.Sprintf("leaves %d", f.Left)
		if f.PassedOver {
			what = "passed over: it would leave none"
		}
		lines = append(lines, "filter    "+f.Name+": "+what)
	}
	lines = append(lines, "balancer  "+x.Balancer)
	if x.Pick != "" {
		lines = append(lines, "pick      "+green.Render(x.Pick)+" ("+x.Reason.String()+")")
	} else {
		lines = append(lines, "pick      "+red.Render("none: "+x.Error))
	}
	out.Print(slices.Concat(lines, []string{""}, explainedInstances(x.Instances, width))...)
}

// explainedInstances returns a table of the instances, followed by the details that do not fit
// into it.
func explainedInstances(list []anser.ExplainedInstance, width int) []string {
	t := table.Table{Columns: []table.Column{{Title: "INSTANCE"}, {Title: "ADDRESS"}, {Title: "WEIGHT", Right: true}, {Title: "LATENCY", Right: true}, {Title: "IN FLIGHT", Right: true}, {Title: "LEFT OUT"}}}
	var said []string
	who := make(map[string][]string)
	say := func(words, key string) {
		if words == "" {
			return
		}
		if who[words] == nil {
			said = append(said, words)
		}
		who[words] = append(who[words], key)
	}
	for _, in := range list {
		why := cmp.Or(string(in.Cause), in.Excluded, "-")
		if in.Cause == anser.ExcludedFilter {
			why = in.Excluded
		} else {
			say(in.Excluded, in.Key)
		}
		say(in.Note, in.Key)
		latency := "-"
		if in.Latency > 0 {
			latency = table.Duration(in.Latency)
		}
		t.Add(in.Key, in.Address, strconv.Itoa(in.Weight), latency, strconv.FormatInt(in.Active, 10), why)
	}
	lines := t.Lines(width)
	if len(said) > 0 {
		lines = append(lines, "")
	}
	for _, words := range said {
		keys := who[words]
		const named = 3
		text := strings.Join(keys[:min(len(keys), named)], ", ")
		if more := len(keys) - named; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, text+": "+words)
	}
	return lines
}
