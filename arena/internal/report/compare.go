package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

// status tells how to read a row. Only measured rows have a rank.
type status string

const (
	measured  status = "measured"
	reference status = "reference" // measured, but not a framework
	published status = "published" // its authors' figures, from another machine
	invalid   status = "invalid"   // wrong replies, or too many errors
)

// notFramework begins the mark of a peer that others are held against, such as the ceiling.
const notFramework = "not a framework"

// peer is what rows have in common that differ in their workload and shape only.
type peer struct {
	Name      string `json:"name"`
	Framework string `json:"framework"`
	Version   string `json:"version,omitempty"`
	Language  string `json:"language"`
	Codec     string `json:"codec,omitempty"`
	Settings  string `json:"settings,omitempty"`
	Notes     []int  `json:"notes,omitempty"` // numbers of its marks, from 1
	Anser     bool   `json:"anser,omitempty"`
}

// group is a workload and a shape: what may be compared with each other.
type group struct {
	workload string
	shape    result.Shape
	key      string
	label    string
	entries  []*entry
}

// entry is a row with all that is known about it.
type entry struct {
	row    *result.Row
	peer   int // in comparison.peers
	group  *group
	status status
	reason string // why it is not valid
}

// comparison is a document in the order in which it is shown.
type comparison struct {
	doc     *result.Document
	groups  []*group
	entries []*entry
	peers   []*peer
	notes   []string
	seconds bool // shapes differ in their seconds too
}

// compare sorts a document into groups.
func compare(doc *result.Document) *comparison {
	c := &comparison{doc: doc, seconds: secondsDiffer(doc)}
	peers := make(map[[7]string]int)
	groups := make(map[string]*group)
	enter := func(row *result.Row, shape result.Shape) {
		e := &entry{row: row, peer: c.peerOf(row, peers)}
		e.status, e.reason = statusOf(row)
		key := row.Workload + " " + shapeKey(&shape, c.seconds)
		g := groups[key]
		if g == nil {
			g = &group{
				workload: row.Workload, shape: shape,
				key: shapeKey(&shape, c.seconds), label: shapeLabel(&shape, c.seconds),
			}
			groups[key] = g
			c.groups = append(c.groups, g)
		}
		e.group = g
		g.entries = append(g.entries, e)
		c.entries = append(c.entries, e)
	}
	own := suite.Groups(doc.Rows, func(row *result.Row) string {
		shape := groupShape(row)
		return row.Workload + " " + shapeKey(&shape, c.seconds)
	})
	for i := range doc.Rows {
		row := &doc.Rows[i]
		shape := groupShape(row)
		if row.Best {
			best := shape
			best.Conns = bestConns
			enter(row, best)
		}
		if own(row) {
			enter(row, shape)
		}
	}
	slices.SortStableFunc(c.groups, func(a, b *group) int {
		return cmp.Or(orderWorkloads(a.workload, b.workload), orderShapes(&a.shape, &b.shape))
	})
	return c
}

// bestConns is the number of connections of a group in which each peer has its own best one.
const bestConns = suite.BestConns

// groupShape is the shape by which a row is compared: a rate that is a share of its own peak
// differs from peer to peer.
func groupShape(row *result.Row) result.Shape {
	shape := row.Shape
	if shape.Share > 0 {
		shape.Rate = 0
	}
	return shape
}

// orderWorkloads puts say first: all peers are measured by it.
func orderWorkloads(a, b string) int {
	if (a == "say") != (b == "say") {
		if a == "say" {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

func secondsDiffer(doc *result.Document) bool {
	seen := make(map[float64]bool)
	for i := range doc.Rows {
		if row := &doc.Rows[i]; row.Shape.Calls == 0 && row.Published == "" {
			seen[row.Shape.Seconds] = true
		}
	}
	return len(seen) > 1
}

// peerOf finds the peer of a row, or enters it.
func (c *comparison) peerOf(row *result.Row, peers map[[7]string]int) int {
	key := [7]string{
		row.Peer, row.Framework, row.Version, row.Language, row.Codec, row.Settings, strings.Join(row.Marks, "\n"),
	}
	if i, ok := peers[key]; ok {
		return i
	}
	p := &peer{
		Name: row.Peer, Framework: row.Framework, Version: row.Version, Language: row.Language,
		Codec: row.Codec, Settings: row.Settings, Anser: strings.EqualFold(row.Framework, "anser"),
	}
	for _, mark := range row.Marks {
		p.Notes = append(p.Notes, c.note(mark))
	}
	peers[key] = len(c.peers)
	c.peers = append(c.peers, p)
	return peers[key]
}

// note returns the number of a mark, from 1.
func (c *comparison) note(mark string) int {
	i := slices.Index(c.notes, mark)
	if i < 0 {
		i = len(c.notes)
		c.notes = append(c.notes, mark)
	}
	return i + 1
}

func statusOf(row *result.Row) (status, string) {
	switch {
	case row.Published != "":
		return published, ""
	case !row.Valid:
		return invalid, reasonOf(row)
	case slices.ContainsFunc(row.Marks, func(m string) bool { return strings.HasPrefix(m, notFramework) }):
		return reference, ""
	}
	return measured, ""
}

// reasonOf says why a row is not valid.
func reasonOf(row *result.Row) string {
	wrong, first := row.Wrong, firstError(row)
	for i := range row.Rounds {
		wrong = max(wrong, row.Rounds[i].Wrong)
	}
	switch {
	case wrong == 1:
		return "1 wrong reply"
	case wrong > 1:
		return thousands(float64(wrong), 0) + " wrong replies"
	case first != "" && row.Errors > 0 && row.Calls == 0:
		return "errors in every call: " + first
	case first != "" && row.Errors > 0:
		return thousands(float64(row.Errors), 0) + " of " + thousands(float64(row.Calls+row.Errors), 0) + " calls failed: " + first
	case first != "":
		return first
	case row.Errors > 0 && row.Calls == 0:
		return "errors in every call"
	}
	return "it was not measured"
}

// firstError returns the error of the first round that has one.
func firstError(row *result.Row) string {
	for i := range row.Rounds {
		if e := row.Rounds[i].FirstError; e != "" {
			return e
		}
	}
	return ""
}

// value reads a figure of the entry; NaN where there is none, or none that may be shown.
func (e *entry) value(f *figure) float64 {
	if e.status == invalid && f.Speed {
		return math.NaN()
	}
	return f.value(e.row)
}

// span is the least and the most of the rounds, under the same rule.
func (e *entry) span(f *figure) (least, most float64, ok bool) {
	if e.status == invalid && f.Speed {
		return 0, 0, false
	}
	return f.span(e.row)
}

// sorted returns the entries of the group, best first: measured ones and references by the figure,
// then published ones by it, then those without it.
func (g *group) sorted(f *figure) []*entry {
	class := func(e *entry) int {
		switch {
		case e.status == invalid:
			return 3
		case math.IsNaN(e.value(f)):
			return 2
		case e.status == published:
			return 1
		}
		return 0
	}
	entries := slices.Clone(g.entries)
	slices.SortStableFunc(entries, func(a, b *entry) int {
		by := 0
		if !math.IsNaN(a.value(f)) && !math.IsNaN(b.value(f)) {
			by = -f.Better * cmp.Compare(a.value(f), b.value(f))
		}
		return cmp.Or(cmp.Compare(class(a), class(b)), by, cmp.Compare(a.row.Peer, b.row.Peer))
	})
	return entries
}

// comparable returns how many entries have a rank.
func (g *group) comparable() int {
	n := 0
	for _, e := range g.entries {
		if e.status == measured {
			n++
		}
	}
	return n
}

// headline returns the group that represents the run: the one of say with 1,000 callers, or the
// most below that, in which each peer has its best connections, otherwise on shared ones, among
// the groups with nearly the most peers. Without such a group it is the one with the most peers;
// nil without any.
func (c *comparison) headline() *group {
	if g := c.headlineOf(kindBest); g != nil {
		return g
	}
	if g := c.headlineOf(kindShared); g != nil {
		return g
	}
	var any *group
	for _, g := range c.groups {
		if any == nil || g.comparable() > any.comparable() {
			any = g
		}
	}
	return any
}

// headlineOf returns the group of a kind of connections that represents the run, nil without any.
func (c *comparison) headlineOf(connections int) *group {
	var common *group
	widest := 0
	shared := func(g *group) bool {
		return g.workload == "say" && plain(&g.shape) && kind(&g.shape) == connections
	}
	for _, g := range c.groups {
		if shared(g) {
			widest = max(widest, g.comparable())
		}
	}
	const callers = 1000
	distance := func(g *group) float64 { return math.Abs(math.Log(float64(max(g.shape.Callers, 1)) / callers)) }
	for _, g := range c.groups {
		// A peer that could not be measured under the heaviest load must not take the load off the
		// page.
		if !shared(g) || g.comparable() == 0 || g.comparable()*10 < widest*8 {
			continue
		}
		if common == nil || distance(g) < distance(common) {
			common = g
		}
	}
	return common
}

// languages returns the languages of the peers with the number of peers of each, most first.
func (c *comparison) languages() []string {
	count := make(map[string]int)
	for _, p := range c.peers {
		count[p.Language]++
	}
	var names []string
	for name := range count {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return names
}

// here returns how many peers ran here, and in how many languages they are written.
func (c *comparison) here() (peers, languages int) {
	names, kinds := make(map[string]bool), make(map[string]bool)
	for _, e := range c.entries {
		if e.status != published {
			names[e.row.Peer], kinds[e.row.Language] = true, true
		}
	}
	return len(names), len(kinds)
}

// rounds returns the most rounds that a row has.
func (c *comparison) rounds() int {
	n := 0
	for _, e := range c.entries {
		n = max(n, len(e.row.Rounds))
	}
	return n
}
