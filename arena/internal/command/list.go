package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/table"
)

// listed is a peer as list --json prints it.
type listed struct {
	Peer      string   `json:"peer"`
	Folder    string   `json:"folder"`
	Framework string   `json:"framework"`
	Version   string   `json:"version"`
	Language  string   `json:"language"`
	Codec     string   `json:"codec"`
	Settings  string   `json:"settings"`
	Reason    string   `json:"reason"`
	Workloads []string `json:"workloads"`
	Conns     []string `json:"conns"`
	Payloads  []int    `json:"payloads"`
	Window    bool     `json:"window"`
	WarmupS   float64  `json:"warmup_s"`
	Marks     []string `json:"marks"`
	Needs     []string `json:"needs"`
	Missing   []string `json:"missing"`
	Built     bool     `json:"built"` // from the sources as they are
}

func newList(s streams) *cobra.Command {
	var chosen string
	var asJSON, long bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "Show the peers",
		Example: "  arena list --peers go\n  arena list --json",
		Args:    takes(0),
		RunE: func(*cobra.Command, []string) error {
			peers, err := list(chosen)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return printJSON(s.out, peers)
			case long:
				return showLong(s, peers)
			}
			return showList(s, peers)
		},
	}
	c.Flags().StringVar(&chosen, "peers", "all", peersHelp)
	c.Flags().BoolVar(&long, "long", false, "print all properties of each peer")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func list(expression string) ([]listed, error) {
	at, err := find()
	if err != nil {
		return nil, err
	}
	if len(at.folders) == 0 {
		return []listed{}, nil
	}
	chosen, err := at.choose(expression)
	if err != nil {
		return nil, err
	}
	all := make([]listed, 0, len(chosen))
	for _, p := range chosen {
		current, err := at.builder.Current(p.Folder)
		if err != nil {
			return nil, err
		}
		all = append(all, listed{
			Peer: p.Name, Folder: p.Folder.Name, Framework: p.Folder.Framework, Version: p.Folder.Version,
			Language: p.Folder.Language, Codec: p.Codec, Settings: p.Settings, Reason: p.Reason,
			Workloads: p.Workloads, Conns: p.Conns, Payloads: p.Payloads, Window: p.Window, WarmupS: p.WarmupS,
			Marks: p.Marks, Needs: p.Folder.Needs, Missing: at.builder.Tools.Missing(p.Folder.Needs), Built: current,
		})
	}
	return all, nil
}

func (l *listed) needs() string {
	if len(l.Missing) > 0 {
		return "MISSING " + strings.Join(l.Missing, " ")
	}
	if l.Built {
		return "built"
	}
	return "ready to build"
}

func showList(s streams, peers []listed) error {
	t := table.New("PEER", "LANGUAGE", "VERSION", "CODEC", "CONNECTIONS", "STATE", "SETTINGS")
	for i := range peers {
		p := &peers[i]
		t.Add(p.Peer, p.Language, p.Version, p.Codec, strings.Join(p.Conns, " "), p.needs(), p.Settings)
	}
	return t.Write(s.out)
}

func showLong(s streams, peers []listed) error {
	for i := range peers {
		p := &peers[i]
		fmt.Fprintf(s.out, "%s: %s %s, %s\n", p.Peer, p.Framework, p.Version, p.Language)
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(s.out, "  %-12s %s\n", name, text)
			}
		}
		line("settings", p.Settings)
		line("reason", p.Reason)
		line("codec", p.Codec)
		line("workloads", strings.Join(p.Workloads, ", "))
		line("connections", strings.Join(p.Conns, ", "))
		var payloads []string
		for _, size := range p.Payloads {
			payloads = append(payloads, strconv.Itoa(size))
		}
		line("payloads", strings.Join(payloads, ", "))
		if p.Window {
			line("window", "keeps several calls of a caller in flight")
		}
		line("warm-up", strconv.FormatFloat(p.WarmupS, 'f', -1, 64)+" s")
		for _, mark := range p.Marks {
			line("mark", mark)
		}
		line("needs", strings.Join(p.Needs, ", "))
		line("state", p.needs())
	}
	return nil
}
