package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// driftLines says in which methods the contracts of a service's instances differ. Instances tell
// fingerprints of their methods in tags; one without them is left out.
func driftLines(services []target.Service) []string {
	var lines []string
	for _, s := range services {
		prints := make(map[string]map[string]string)
		for i := range s.Instances {
			prints[s.Instances[i].Key()] = target.Fingerprints(&s.Instances[i])
		}
		for _, d := range target.DriftOf(prints) {
			lines = append(lines, fair.Render("contracts differ")+fmt.Sprintf(": %s of service %s: %s", d.Method, s.Name, &d))
		}
	}
	if len(lines) > 0 {
		lines = append(lines, `"anser breaking OLD NEW" shows what such a difference breaks.`)
	}
	return lines
}

// differences returns, for each method that a server describes, how its contract differs from that
// in the files: "" if it does not, or if neither side knows the contract.
func differences(ctx context.Context, methods []anser.MethodInfo, files, imports []string) (map[string]string, error) {
	ours, err := gen.Schemas(ctx, files, imports)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	served := make(map[string]bool)
	services := make(map[string]bool)
	for _, m := range methods {
		served[m.Name] = true
		i := strings.LastIndexByte(m.Name, '.')
		services[m.Name[:i]] = true
		for _, schema := range ours {
			print := schema.Fingerprint(m.Name[:i], m.Name[i+1:])
			switch {
			case print == "" && schema.Service(m.Name[:i]) != nil:
				out[m.Name] = "the files have no such method"
			case print != "" && m.Fingerprint == "":
				out[m.Name] = "the server knows no contract of it"
			case print != "" && print != m.Fingerprint:
				out[m.Name] = "its contract differs"
			}
		}
	}
	for _, schema := range ours {
		for _, s := range schema.Services {
			for _, m := range s.Methods {
				if name := s.Name + "." + m.Name; services[s.Name] && !served[name] {
					out[name] = "the server does not have it"
				}
			}
		}
	}
	return out, nil
}
