package report

import (
	"math"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// pageData is what the page's script reads. Rounds are in it as their least and most only, and
// what rows have in common once, so that a thousand rows stay a small page.
type pageData struct {
	Figures   []figure       `json:"figures"`
	Kinds     []string       `json:"kinds"`
	Languages []pageLanguage `json:"languages"`
	Peers     []pagePeer     `json:"peers"`
	Shapes    []pageShape    `json:"shapes"`
	Rows      []pageRow      `json:"rows"`
	Notes     []string       `json:"notes"`
	Codecs    []pageCodec    `json:"codecs"`
	Headline  int            `json:"headline"` // in Shapes; -1: there is none
}

type pageLanguage struct {
	Key   string `json:"key"` // in an address
	Name  string `json:"name"`
	Class string `json:"class"`
}

type pagePeer struct {
	peer
	Lang  string `json:"lang"` // key of its language
	Class string `json:"class"`
}

type pageShape struct {
	Workload string `json:"workload"`
	Key      string `json:"key"`
	Label    string `json:"label"`
	Kind     int    `json:"kind"`
	Callers  int    `json:"callers"`
	Series   string `json:"series"`
	Common   string `json:"common"` // label of the series
	Open     bool   `json:"open"`
	Best     bool   `json:"best"` // each peer has its own best connections
}

type pageRow struct {
	Peer      int                  `json:"peer"`
	Shape     int                  `json:"shape"`
	Status    status               `json:"status"`
	Conns     string               `json:"conns"`
	Trials    []string             `json:"trials,omitempty"` // by which its connections were chosen
	Values    []number             `json:"values"`           // in the order of Figures
	Spans     map[string][2]number `json:"spans,omitempty"`
	Disturbed int                  `json:"disturbed,omitempty"`
	Error     string               `json:"error,omitempty"`  // the first one
	Reason    string               `json:"reason,omitempty"` // why it is not valid
	Source    string               `json:"source,omitempty"` // of published figures
	Link      string               `json:"link,omitempty"`   // Source, where it is an address
}

type pageCodec struct {
	Name         string `json:"name"`
	Library      string `json:"library"`
	Anser        bool   `json:"anser"`
	Language     string `json:"language"`
	Class        string `json:"class"`
	EncodeNS     number `json:"encode"`
	DecodeNS     number `json:"decode"`
	Bytes        int    `json:"bytes"`
	EncodeAllocs int64  `json:"encodeAllocs"`
	DecodeAllocs int64  `json:"decodeAllocs"`
	EncodeBytes  int64  `json:"encodeBytes"`
	DecodeBytes  int64  `json:"decodeBytes"`
}

func dataOf(c *comparison) *pageData {
	d := &pageData{
		Figures: figures, Kinds: kinds, Headline: -1,
		Languages: []pageLanguage{}, Peers: []pagePeer{}, Shapes: []pageShape{}, Rows: []pageRow{}, Codecs: []pageCodec{},
		Notes: append([]string{}, c.notes...),
	}
	seen := make(map[string]bool)
	for _, language := range c.languages() {
		if key := languageKey(language); !seen[key] {
			seen[key] = true
			d.Languages = append(d.Languages, pageLanguage{Key: key, Name: languageName(language), Class: languageClass(language)})
		}
	}
	for _, p := range c.peers {
		d.Peers = append(d.Peers, pagePeer{peer: *p, Lang: languageKey(p.Language), Class: languageClass(p.Language)})
	}
	headline := c.headline()
	for i, g := range c.groups {
		if g == headline {
			d.Headline = i
		}
		d.Shapes = append(d.Shapes, pageShape{
			Workload: g.workload, Key: g.key, Label: g.label, Kind: kind(&g.shape), Callers: g.shape.Callers,
			Series: seriesKey(&g.shape, c.seconds), Common: seriesLabel(&g.shape, c.seconds), Open: g.shape.Rate > 0 || g.shape.Share > 0,
			Best: g.shape.Conns == bestConns,
		})
		for _, e := range g.entries {
			d.Rows = append(d.Rows, rowOf(c, e, i))
		}
	}
	for _, codec := range sortedCodecs(c.doc.Codecs) {
		d.Codecs = append(d.Codecs, codecOf(&codec))
	}
	return d
}

func languageKey(language string) string { return strings.ToLower(language) }

func rowOf(c *comparison, e *entry, shape int) pageRow {
	r := pageRow{
		Conns: connsWord(&e.row.Shape), Trials: c.trials(e.row),
		Peer: e.peer, Shape: shape, Status: e.status, Disturbed: disturbed(e.row),
		Error: firstError(e.row), Reason: e.reason, Source: e.row.Published, Link: address(e.row.Published),
	}
	for i := range figures {
		f := &figures[i]
		v := e.value(f)
		if e.status == published && v == 0 {
			v = math.NaN() // its authors did not say
		}
		r.Values = append(r.Values, number(v))
		if !f.Span {
			continue
		}
		if least, most, ok := e.span(f); ok {
			if r.Spans == nil {
				r.Spans = make(map[string][2]number)
			}
			r.Spans[f.Key] = [2]number{number(least), number(most)}
		}
	}
	return r
}

func codecOf(c *result.Codec) pageCodec {
	return pageCodec{
		Name: c.Name, Library: c.Library, Anser: c.Anser, Language: languageName(c.Language), Class: languageClass(c.Language),
		EncodeNS: number(c.EncodeNS), DecodeNS: number(c.DecodeNS), Bytes: c.Bytes,
		EncodeAllocs: c.EncodeAllocs, DecodeAllocs: c.DecodeAllocs, EncodeBytes: c.EncodeBytes, DecodeBytes: c.DecodeBytes,
	}
}
