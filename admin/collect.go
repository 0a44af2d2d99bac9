package admin

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// parts are the parts of a document.
type parts uint

const (
	ofMethods parts = 1 << iota
	ofServers
	ofServed // the methods of servers
	ofClients
	ofConns
	ofStreams
	ofOptions
	ofFailures
	ofSlow
	ofRules

	everything parts = 1<<iota - 1

	ofTrace parts = 1 << 20 // of the trace that a request asks for
)

// bounds limit the lists of each side.
type bounds struct{ conns, streams int }

// document returns the parts of the document.
func (p *Page) document(want parts, most bounds) *Document {
	now, before := p.samples.look()
	d := newDifference(now, before)
	doc := &Document{Format: Format, Time: now.Time, Process: p.process(now, before)}
	if d != nil {
		doc.Window = d.window
	}
	var served, called tally
	targets := make(map[string]*tally)
	services := make(map[string]string)
	clients := p.meter.Clients()
	statuses := make([]anser.ClientStatus, len(clients))
	for i, c := range clients {
		statuses[i] = c.Status()
		services[statuses[i].Target] = statuses[i].Service
	}
	for i := range now.Methods {
		m := &now.Methods[i]
		var t tally
		if d != nil {
			t.add(d, m)
			if m.Server {
				served.add(d, m)
			} else {
				called.add(d, m)
				target := m.Target
				if targets[target] == nil {
					targets[target] = new(tally)
				}
				targets[target].add(d, m)
			}
		}
		if want&ofMethods != 0 {
			doc.Methods = append(doc.Methods, methodOf(m, t.recent(d), services[m.Target]))
		}
	}
	doc.Served, doc.Called = served.recent(d), called.recent(d)
	for _, s := range p.meter.Servers() {
		for _, a := range s.Announcements() {
			doc.Process.Services = append(doc.Process.Services, a.Instance.Service)
		}
		if want&ofServers != 0 {
			doc.Servers = append(doc.Servers, serverOf(s, want, most))
		}
	}
	slices.Sort(doc.Process.Services)
	doc.Process.Services = slices.Compact(doc.Process.Services)
	slices.SortFunc(doc.Servers, func(a, b Server) int { return slices.Compare(a.Addresses, b.Addresses) })
	if want&ofClients != 0 {
		for i, c := range clients {
			t := targets[statuses[i].Target]
			if t == nil {
				t = new(tally)
			}
			doc.Clients = append(doc.Clients, clientOf(c, &statuses[i], t.recent(d), want, most))
		}
		slices.SortStableFunc(doc.Clients, func(a, b Client) int { return strings.Compare(a.Target, b.Target) })
	}
	if want&ofFailures != 0 {
		calls, skipped := p.meter.Failures()
		doc.Failures = listOf(calls, skipped)
	}
	if want&ofSlow != 0 {
		calls, skipped := p.meter.SlowCalls()
		doc.Slow = listOf(calls, skipped)
	}
	return doc
}

// listOf returns a list that is not null in JSON.
func listOf(calls []*telemetry.Call, skipped uint64) *Calls {
	return &Calls{append([]*telemetry.Call{}, calls...), skipped}
}

var runtimeMetrics = [...]string{"/memory/classes/total:bytes", "/memory/classes/heap/released:bytes", "/gc/heap/live:bytes"}

func (p *Page) process(now, before *sample) Process {
	values := make([]metrics.Sample, len(runtimeMetrics))
	for i, name := range runtimeMetrics {
		values[i].Name = name
	}
	metrics.Read(values)
	of := func(i int) uint64 {
		if values[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return values[i].Value.Uint64()
	}
	out := p.self
	out.PID, out.Go, out.Processors, out.Goroutines = os.Getpid(), runtime.Version(), runtime.GOMAXPROCS(0), runtime.NumGoroutine()
	out.CPU, out.Memory, out.Heap = now.cpu, of(0)-min(of(0), of(1)), of(2)
	if before != nil {
		out.RecentCPU = float64(now.cpu-before.cpu) / float64(now.Time.Sub(before.Time))
	}
	return out
}

func methodOf(m *telemetry.Method, recent *Recent, service string) Method {
	out := Method{
		Side: side(m.Server), Target: m.Target, Service: service, Name: m.Name, Recent: recent,
		Retried: m.Retried, Refused: m.Refused, Replayed: m.Replayed,
		RequestBytes: m.RequestBytes, ReplyBytes: m.ReplyBytes,
		Queue: m.Queue, Decode: m.Decode, Handle: m.Handle, Encode: m.Encode, Slowest: m.Slowest,
	}
	for _, s := range m.Codes {
		out.Codes = append(out.Codes, Series{s.Code, Histogram{telemetry.Scale, s.Times.Count, s.Times.Sum, s.Times.First, s.Times.Counts}})
	}
	return out
}

func side(server bool) string {
	if server {
		return "server"
	}
	return "client"
}

func serverOf(s *anser.Server, want parts, most bounds) Server {
	st := s.Stats()
	out := Server{
		Addresses: []string{}, // not null in JSON

		Conns: st.Conns, InFlight: st.InFlight, Streams: st.Streams, Waiting: st.Limits.Waiting, Accepted: st.Accepted,
		HandshakeFailed: st.HandshakeFailed, Refused: st.Refused, Cancelled: st.Cancelled, Panics: st.Panics, Handoffs: st.Handoffs,
		Replayed: st.Replayed, Denied: st.Denied, CutOff: st.CutOff, WrongAddress: st.WrongAddress,
		Unauthenticated: st.Unauthenticated, Closed: st.Closed, LimitsHit: st.LimitsHit, Memory: st.Memory,
	}
	for _, a := range s.Addrs() {
		out.Addresses = append(out.Addresses, text(a))
	}
	for _, a := range s.Announcements() {
		out.Announcements = append(out.Announcements, Announcement{a.Instance, a.Registered, message(a.Trouble), a.Since})
	}
	if want&ofServed != 0 {
		for _, m := range s.MethodStatus() {
			out.Methods = append(out.Methods, servedOf(&m, st.Methods[m.Name]))
		}
	}
	if want&ofConns != 0 {
		list, _ := s.Conns(most.conns)
		out.Connections = connsOf(list)
	}
	if want&ofStreams != 0 {
		list, all := s.Streams(most.streams)
		out.OpenStreams, out.Streams = streamsOf(list), int64(all)
	}
	if want&ofOptions != 0 {
		out.Options = optionsOf(s.Options())
	}
	return out
}

func servedOf(m *anser.MethodStatus, st anser.MethodStats) ServedMethod {
	runs := "worker"
	if m.Inline {
		runs = "inline"
	}
	return ServedMethod{
		Name: m.Name, Aliases: m.Aliases, Stream: m.Stream, Oneway: m.Oneway, Idempotent: m.Idempotent, Builtin: m.Builtin, Forwarded: m.Forwarded,
		Runs: runs, Fixed: m.Fixed, Run: m.Run, Calls: st.Calls, Failed: st.Failed, Refused: st.Refused,
		MaxInFlight: m.MaxInFlight, MaxQueueTime: m.MaxQueueTime,
		Limit: st.Limits.Limit, Running: st.Limits.Running, Waiting: st.Limits.Waiting,
	}
}

func clientOf(c *anser.Client, st *anser.ClientStatus, recent *Recent, want parts, most bounds) Client {
	out := Client{
		Instances: []Instance{}, // not null in JSON

		Target: st.Target, Service: st.Service, Recent: recent, Updated: st.Updated, Saved: st.Saved, Trouble: message(st.Trouble), Since: st.Since,
		Subset: st.Subset, Failback: st.Failback.Waiting, Ignored: st.Ignored,
	}
	for change, n := range st.Health {
		if out.Health == nil {
			out.Health = make(map[string]int64)
		}
		out.Health[change.String()] = n
	}
	for i := range st.Instances {
		out.Instances = append(out.Instances, instanceOf(&st.Instances[i]))
	}
	if r := st.Rules; r != nil {
		out.Rules = &Rules{Version: r.Version, Applied: r.Applied, Saved: r.Saved, Trouble: message(r.Trouble), NotFollowed: r.NotFollowed}
		if want&ofRules != 0 && json.Valid([]byte(r.Text)) {
			out.Rules.Text = json.RawMessage(r.Text)
		}
	}
	list, all := c.Conns(most.conns)
	out.Conns = all
	if want&ofConns != 0 {
		out.Connections = connsOf(list)
	}
	if want&ofStreams != 0 {
		list, all := c.Streams(most.streams)
		out.OpenStreams, out.Streams = streamsOf(list), all
	}
	if want&ofOptions != 0 {
		out.Options, out.Overrides = optionsOf(c.Options()), overridesOf(st.Rules)
	}
	return out
}

func instanceOf(in *anser.InstanceStatus) Instance {
	out := Instance{
		Instance: in.Instance, Held: in.Held, Active: in.Active, Latency: in.Latency, EjectedUntil: in.EjectedUntil, Ejections: in.Ejections,
	}
	switch {
	case in.Ejected != "":
		out.Status, out.Why = "ejected", in.Ejected
	case in.Down:
		out.Status, out.Why = "down", "it could not be reached at the last attempt"
	case in.Connected:
		out.Status = "connected"
	case in.Outside:
		out.Status, out.Why = "outside", "it is not in the client's subset"
	default:
		out.Status = "idle"
	}
	for _, b := range in.Breakers {
		out.Breakers = append(out.Breakers, Breaker{b.Method, b.State, b.Calls, b.Failed, b.Until})
	}
	return out
}

func connsOf(list []anser.ConnStatus) (out []Conn) {
	for i := range list {
		c := &list[i]
		k := Conn{
			Peer: text(c.Addr), Local: text(c.Local), Protocol: c.Protocol, InFlight: c.InFlight, Streams: c.Streams, Draining: c.Draining,
			Checksums: c.Checksums, Sent: c.Sent, Received: c.Received, Waiting: c.Waiting, Credit: c.Credit, Quiet: c.Quiet,
		}
		if c.Address != "" {
			k.Peer = c.Address
		}
		if c.TLS != nil {
			k.TLS = tls.VersionName(c.TLS.Version)
		}
		if c.Identity != nil {
			k.Identity = c.Identity.Subject
		}
		out = append(out, k)
	}
	return out
}

func optionsOf(list []anser.OptionStatus) (out []OptionValue) {
	for _, o := range list {
		v := OptionValue{Name: o.Name, Value: o.Value, Set: o.Set, By: o.By}
		if o.Set {
			v.Default = o.Default
		}
		out = append(out, v)
	}
	return out
}

func text(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}

// since formats a time for people: how long ago it was.
func since(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t)) + " ago"
}
