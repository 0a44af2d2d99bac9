package admin

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

func connectionsPage(d *Document, _ url.Values) []section {
	return eachSide(d, "Connections",
		func(title string, s *Server) section { return connsSection(title, s.Connections, s.Conns) },
		func(title string, c *Client) section { return connsSection(title, c.Connections, c.Conns) })
}

// eachSide returns a section for each server and for each client. title is that of a page without
// any.
func eachSide(d *Document, title string, ofServer func(string, *Server) section, ofClient func(string, *Client) section) (list []section) {
	for i := range d.Servers {
		s := &d.Servers[i]
		list = append(list, ofServer("Server "+cmp.Or(strings.Join(s.Addresses, ", "), "that does not listen"), s))
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		list = append(list, ofClient("Client of "+c.Target, c))
	}
	if len(list) == 0 {
		list = append(list, section{Title: title, Empty: "The meter has neither a server nor a client."})
	}
	return list
}

func connsSection(title string, conns []Conn, all int) section {
	s := section{
		Title: title, Empty: "No connections.",
		Columns: columns("Peer", "Protocol", "TLS", "Identity", ">In flight", ">Streams", ">Received", ">Sent", ">To write", ">Credit", ">Quiet", "State"),
	}
	if len(conns) < all {
		s.Note = fmt.Sprintf("%d of %d, the busiest first; ?conns=N shows more.", len(conns), all)
	}
	for _, c := range conns {
		own := c.Protocol == "anser"
		bytes := func(n float64) cell {
			if !own {
				return dim("–")
			}
			return plain(size(n))
		}
		quiet := dim("–")
		if own {
			quiet = plain(span(c.Quiet))
		}
		state := plain("open")
		if c.Draining {
			state = cell{Text: "draining", Class: "warn"}
		}
		s.Rows = append(s.Rows, []cell{
			{Text: c.Peer, Key: c.Local + " " + c.Peer},
			plain(c.Protocol), plain(cmp.Or(c.TLS, "no")), plain(c.Identity), plain(fmt.Sprint(c.InFlight)), number(c.Streams, ""),
			bytes(float64(c.Received)), bytes(float64(c.Sent)), bytes(float64(c.Waiting)), bytes(float64(c.Credit)), quiet, state,
		})
	}
	return s
}

func clientsPage(d *Document, _ url.Values) (list []section) {
	list = append(list, edgesSection(d))
	for i := range d.Clients {
		c := &d.Clients[i]
		s := section{
			Title: "Instances of " + c.Target, Empty: "The client knows no instance.",
			Columns: columns("Instance", "Address", "Zone", "Version", ">Weight", "Registered as", "Status", ">Active", ">Latency", "Breakers", "Why"),
		}
		if c.Subset > 0 {
			s.Note = fmt.Sprintf("The client uses a subset of %d of them.", c.Subset)
		}
		for j := range c.Instances {
			s.Rows = append(s.Rows, instanceRow(d, &c.Instances[j]))
		}
		list = append(list, s)
	}
	return list
}

func instanceRow(d *Document, in *Instance) []cell {
	status := plain(in.Status)
	switch in.Status {
	case "ejected", "down":
		status.Class = "bad"
	case "idle", "outside":
		status.Class = "dim"
	}
	why := in.Why
	if !in.EjectedUntil.IsZero() {
		why += fmt.Sprintf("; a call probes it in %s", span(max(in.EjectedUntil.Sub(d.Time), 0)))
	}
	if in.Held {
		why = strings.TrimPrefix(why+"; the registry lists it no longer, and it is kept as too many went at once", "; ")
	}
	latency := dim("–")
	if in.Latency > 0 {
		latency = plain(span(in.Latency))
	}
	breakers := dim("closed")
	var open []string
	for _, b := range in.Breakers {
		open = append(open, fmt.Sprintf("%s %s, %d of %d failed", b.Method, b.State, b.Failed, b.Calls))
	}
	if len(open) > 0 {
		breakers = cell{Text: strings.Join(open, "; "), Class: "warn"}
	}
	return []cell{
		plain(in.Key()), plain(in.Address), plain(in.Zone), plain(in.Version), plain(fmt.Sprint(in.EffectiveWeight())), plain(in.State.String()), status,
		plain(fmt.Sprint(in.Active)), latency, breakers, plain(why),
	}
}

// registriesSection says of each registry that clients use whether it answers.
func registriesSection(d *Document) section {
	s := section{Title: "Registries", Empty: "No client has its instances from a registry.", Columns: columns("Registry", "State", ">Services", ">Instances", "Oldest list", "Trouble")}
	type use struct {
		services, instances int
		oldest, since       time.Time
		trouble             string
	}
	uses := make(map[string]*use)
	for i := range d.Clients {
		c := &d.Clients[i]
		if c.Service == "" {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(c.Target, c.Service), "/")
		u := uses[name]
		if u == nil {
			u = &use{oldest: c.Updated}
			uses[name] = u
		}
		u.services, u.instances = u.services+1, u.instances+len(c.Instances)
		if c.Updated.Before(u.oldest) {
			u.oldest = c.Updated
		}
		if c.Trouble != "" && (u.trouble == "" || c.Since.Before(u.since)) {
			u.trouble, u.since = c.Trouble, c.Since
		}
	}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		u := uses[name]
		state, oldest := plain("answers"), cmp.Or(since(d.Time, u.oldest), "none yet")
		if u.trouble != "" {
			state = bad("unreachable for " + span(d.Time.Sub(u.since)))
		}
		s.Rows = append(s.Rows, []cell{plain(name), state, plain(fmt.Sprint(u.services)), plain(fmt.Sprint(u.instances)), plain(oldest), bad(u.trouble)})
	}
	return s
}

func registriesPage(d *Document, _ url.Values) []section {
	out := section{
		Title: "Instances that the process announces", Empty: "None: see anser.Announce.",
		Columns: columns("Service", "Instance", "Address", "Registered", "Since", "Trouble"),
	}
	for i := range d.Servers {
		for _, a := range d.Servers[i].Announcements {
			state := plain("yes")
			if !a.Registered {
				state = bad("no")
			}
			out.Rows = append(out.Rows, []cell{plain(a.Instance.Service), plain(a.Instance.Key()), plain(a.Instance.Address), state, plain(since(d.Time, a.Since)), bad(a.Trouble)})
		}
	}
	in := section{
		Title: "Lists that its clients follow", Empty: "The meter has no client.",
		Columns: columns("Target", "Registry", ">Instances", "Rules", "Trouble of the rules"),
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		rules, trouble := dim("none"), ""
		if r := c.Rules; r != nil {
			trouble = r.Trouble
			switch {
			case r.NotFollowed:
				rules = cell{Text: "the registry has rules that the client does not follow: see route.Rules", Class: "warn"}
			case r.Version > 0 && r.Saved:
				rules = cell{Text: fmt.Sprintf("version %d, from disk", r.Version), Class: "warn"}
			case r.Version > 0:
				rules = plain(fmt.Sprintf("version %d, in force since %s", r.Version, r.Applied.Format(time.TimeOnly)))
			}
		}
		in.Rows = append(in.Rows, []cell{plain(c.Target), registryCell(d, c), plain(fmt.Sprint(len(c.Instances))), rules, bad(trouble)})
	}
	return append([]section{registriesSection(d), out, in}, rulesSections(d)...)
}

func failuresPage(d *Document, _ url.Values) []section {
	return []section{callsSection("Latest calls that failed", d.Failures, d.Time, len(d.Failures.Calls)+1)}
}

func slowPage(d *Document, _ url.Values) []section { return []section{slowSection(d.Slow, d.Time)} }

func slowSection(list *Calls, now time.Time) section {
	s := section{
		Title: "Latest slow calls", Empty: "None.", Legend: append(steps[:len(steps):len(steps)], "rest"),
		Note:    "Servers know what takes the time: waiting in the queue, decoding, the handler, encoding. The network is what the caller's time has in addition.",
		Columns: columns("Ended", "Side", "Method", "Result", ">Duration", "Where the time went", ">Request", ">Reply", "Peer", "Identity", "Trace", "Attempts"),
	}
	for _, c := range list.Calls {
		bytes := func(n int) cell {
			if n == 0 {
				return dim("–")
			}
			return plain(size(float64(n)))
		}
		bar := dim("–")
		if c.Side == "server" {
			bar = costs(c.Queue, c.Decode, c.Handle, c.Encode, c.Duration)
		}
		s.Rows = append(s.Rows, []cell{
			ended(now, c), plain(c.Side), plain(c.Method), result(c), plain(span(c.Duration)), bar, bytes(c.RequestBytes), bytes(c.ReplyBytes),
			plain(peer(c)), plain(c.Identity), traceCell(c), plain(explain(c)),
		})
	}
	if list.Skipped > 0 {
		s.Note += fmt.Sprintf(" %d calls were left out, as there were more than 500 in a second.", list.Skipped)
	}
	return s
}

func optionsPage(d *Document, _ url.Values) (list []section) {
	for i := range d.Servers {
		v := &d.Servers[i]
		list = append(list, optionsSection("Server "+strings.Join(v.Addresses, ", "), v.Options, nil))
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		list = append(list, optionsSection("Client of "+c.Target, c.Options, overrideRows(c)))
	}
	if len(list) == 0 {
		list = append(list, section{Title: "Options", Empty: "The meter has neither a server nor a client."})
	}
	return list
}

// optionsSection lists options, after what rules set in place of some of them.
func optionsSection(title string, options []OptionValue, overrides [][]cell) section {
	s := section{Title: title, Columns: columns("Option", "Value", "Set by", "Default"), Rows: overrides}
	// What the program has set comes first.
	options = slices.SortedStableFunc(slices.Values(options), func(a, b OptionValue) int {
		switch {
		case a.Set == b.Set:
			return 0
		case a.Set:
			return -1
		}
		return 1
	})
	for _, o := range options {
		by := dim("default")
		if o.Set {
			by = plain(cmp.Or(o.By, "an option of the program"))
		}
		s.Rows = append(s.Rows, []cell{plain("anser." + o.Name), plain(o.Value), by, dim(o.Default)})
	}
	return s
}
