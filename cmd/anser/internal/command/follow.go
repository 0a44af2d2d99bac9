package command

import (
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/route"
)

// callerFlags describe the caller to traffic rules.
type callerFlags struct {
	caller route.Caller
	tags   map[string]string
}

func (f *callerFlags) add(c *cobra.Command) {
	for _, flag := range []struct {
		name  string
		value *string
	}{
		{"service", &f.caller.Service},
		{"group", &f.caller.Group},
		{"version", &f.caller.Version},
		{"zone", &f.caller.Zone},
	} {
		c.Flags().StringVar(flag.value, "caller-"+flag.name, "", flag.name+" of the caller, for traffic rules that match it")
	}
	c.Flags().StringToStringVar(&f.tags, "caller-tag", nil, "tags of the caller, as key=value, for traffic rules that match them")
	c.Flags().Lookup("caller-tag").DefValue = "" // instead of []
}

// options returns the options of anser.Dial that apply the traffic rules of a target, if it can
// have any.
func (f *callerFlags) options(typed string, r *sourceFlags) ([]anser.DialOption, error) {
	full, err := target.Resolve(typed, r.url)
	if err != nil {
		return nil, &usageError{err}
	}
	if !target.KeepsRules(full) {
		return nil, nil
	}
	caller := f.caller
	caller.Tags = f.tags
	return []anser.DialOption{route.Rules(route.From(caller))}, nil
}

// followFlags are the flags of the commands whose calls follow traffic rules by default.
type followFlags struct {
	callerFlags
	noRules bool
}

func (f *followFlags) add(c *cobra.Command) {
	f.callerFlags.add(c)
	c.Flags().BoolVar(&f.noRules, "no-rules", false, "ignore the traffic rules of the service")
}

func (f *followFlags) options(typed string, r *sourceFlags) ([]anser.DialOption, error) {
	if f.noRules {
		return nil, nil
	}
	return f.callerFlags.options(typed, r)
}
