package auth

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/anser-rpc/anser"
)

// Rules define which clients may call which methods. A call must match a rule in Allow, and no
// rule in Deny.
type Rules struct {
	Allow []Rule `json:"allow,omitempty"`
	Deny  []Rule `json:"deny,omitempty"`
}

// Rule matches the clients that are one of Subjects or in one of Groups, and the methods that
// match one of Methods.
type Rule struct {
	// Subjects are names of clients. A name that ends with * matches all names with that prefix,
	// and "*" matches every authenticated client.
	Subjects []string `json:"subjects,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	// Methods are canonical names such as "Arith.Mul", "Arith.*" for the methods of a service, or
	// "*" for all methods, including "Anser.Methods".
	Methods []string `json:"methods"`
}

// Policy is an [anser.Authorizer] that applies rules. All methods are safe for concurrent use.
type Policy struct {
	now  atomic.Pointer[rules]
	file *follower
}

type rules struct {
	Rules
	version uint64
}

// NewPolicy returns a policy with these rules.
func NewPolicy(r Rules) (*Policy, error) {
	p := new(Policy)
	if err := p.Set(r); err != nil {
		return nil, err
	}
	return p, nil
}

// OpenPolicy reads the rules from a JSON file, and follows it until Close. If a changed file is
// invalid, the previous rules stay in force, and the error is logged. The format of the file is:
//
//	{"allow": [{"groups": ["ops"], "methods": ["*"]}, {"subjects": ["billing"], "methods": ["Arith.*"]}],
//	 "deny":  [{"subjects": ["*"], "methods": ["Arith.Reset"]}]}
func OpenPolicy(file string, opts ...FollowOption) (*Policy, error) {
	p := new(Policy)
	f, err := open([]string{file}, opts, func(contents [][]byte) error { return p.load(file, contents[0]) })
	if err != nil {
		return nil, err
	}
	p.file = f
	return p, nil
}

// load applies the rules in a file.
func (p *Policy) load(file string, b []byte) error {
	var r Rules
	if err := decode(file, b, &r); err != nil {
		return err
	}
	if err := p.Set(r); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Set replaces all rules. They apply to the next call on every connection; open calls and streams
// that are no longer allowed are ended within two seconds.
func (p *Policy) Set(r Rules) error {
	r = Rules{clone(r.Allow), clone(r.Deny)}
	for name, list := range map[string][]Rule{"allow": r.Allow, "deny": r.Deny} {
		for i, rule := range list {
			if err := rule.check(); err != nil {
				return fmt.Errorf("auth: %s[%d]: %w", name, i, err)
			}
		}
	}
	for {
		old, next := p.now.Load(), &rules{Rules: r, version: 1}
		if old != nil {
			next.version = old.version + 1
		}
		if p.now.CompareAndSwap(old, next) {
			return nil
		}
	}
}

func clone(list []Rule) []Rule {
	out := slices.Clone(list)
	for i, r := range out {
		out[i] = Rule{slices.Clone(r.Subjects), slices.Clone(r.Groups), slices.Clone(r.Methods)}
	}
	return out
}

// Close stops following the file. The rules stay in force.
func (p *Policy) Close() error { return p.file.close() }

// Version implements [anser.Authorizer].
func (p *Policy) Version() uint64 { return p.now.Load().version }

// Allows implements [anser.Authorizer].
func (p *Policy) Allows(id *anser.Identity, method string) bool {
	r := p.now.Load()
	about := func(rule Rule) bool { return rule.isAbout(id, method) }
	return !slices.ContainsFunc(r.Deny, about) && slices.ContainsFunc(r.Allow, about)
}

func (r *Rule) check() error {
	if len(r.Subjects)+len(r.Groups) == 0 {
		return fmt.Errorf("it has no subjects and no groups: add some, or the subject \"*\" for every client")
	}
	if len(r.Methods) == 0 {
		return fmt.Errorf("it has no methods: give it some, or \"*\" for all")
	}
	for i, s := range r.Subjects {
		if s == "" || strings.Contains(strings.TrimSuffix(s, "*"), "*") {
			return fmt.Errorf("subjects[%d] is %q: want a name, which may end with *", i, s)
		}
	}
	for i, g := range r.Groups {
		if g == "" || strings.Contains(g, "*") {
			return fmt.Errorf("groups[%d] is %q: want the name of a group", i, g)
		}
	}
	for i, m := range r.Methods {
		dot := strings.LastIndexByte(m, '.')
		name, service := m[dot+1:], m[:max(dot, 0)]
		if m != "*" && (service == "" || name == "" || strings.Contains(service, "*") || name != "*" && strings.Contains(name, "*")) {
			return fmt.Errorf("methods[%d] is %q: want \"Service.Method\", \"Service.*\" or \"*\"", i, m)
		}
	}
	return nil
}

func (r *Rule) isAbout(id *anser.Identity, method string) bool {
	if id == nil || !slices.ContainsFunc(r.Subjects, func(s string) bool { return fits(s, id.Subject) }) && !slices.ContainsFunc(r.Groups, id.In) {
		return false
	}
	service := method[:strings.LastIndexByte(method, '.')+1]
	return slices.ContainsFunc(r.Methods, func(m string) bool {
		return m == "*" || m == method || service != "" && strings.TrimSuffix(m, "*") == service
	})
}

// fits reports whether a pattern, which may end with *, matches the name.
func fits(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
