// Package peer reads what the folders of the arena say of their peers, see CONTRACT.md, and
// chooses among them.
package peer

import "slices"

// Contract is the version of CONTRACT.md that this package follows.
const Contract = 1

// Folder is one folder of peers, with what its peer.json says.
type Folder struct {
	Name string `json:"-"` // of the folder below arena/peers
	Path string `json:"-"`

	Contract  int        `json:"contract"`
	Framework string     `json:"framework"`
	Version   string     `json:"version"`
	Language  string     `json:"language"`
	Needs     []string   `json:"needs"`
	Debian    []string   `json:"debian"`
	Build     [][]string `json:"build"`
	// Inputs are files and folders outside of the folder that its programs are built from,
	// relative to the root of the repository, with the patterns of path.Match. A change of them
	// builds anew.
	Inputs []string `json:"inputs"`
	Peers  []*Peer  `json:"peers"`
}

// Peer is a framework in one setting.
type Peer struct {
	Name      string   `json:"name"`
	Settings  string   `json:"settings"`
	Reason    string   `json:"reason"`
	Server    []string `json:"server"`
	Client    []string `json:"client"`
	Codec     string   `json:"codec"`
	Workloads []string `json:"workloads"`
	Conns     []string `json:"conns"`
	Payloads  []int    `json:"payloads"`
	// MaxConns is the most connections that the server serves at a time; 0 is any number. With a
	// connection for each call it does not count: they wait for each other.
	MaxConns int `json:"max_conns"`
	// MaxCallsPerConn is the most calls that a connection carries at a time without breaking; 0 is
	// any number.
	MaxCallsPerConn int `json:"max_calls_per_conn"`

	Window  bool     `json:"window"`
	WarmupS float64  `json:"warmup_s"`
	Marks   []string `json:"marks"`

	Folder *Folder `json:"-"`
}

// The values of Workloads and Conns.
const (
	Say = "say"
	Add = "add"

	Shared = "shared" // the callers share a few connections
	Pool   = "pool"   // the callers share more of them, and still have fewer than one each
	Each   = "each"   // each caller has its own
	Fresh  = "fresh"  // each call has its own
)

// StandardPayload is the size of the message of say by which all peers are compared.
const StandardPayload = 581

// LanguageName returns the language as --peers takes it.
func (f *Folder) LanguageName() string { return languageName(f.Language) }

func languageName(name string) string {
	if name == "c++" {
		return "cpp"
	}
	return name
}

// Supports reports whether the peer uses connections in a way.
func (p *Peer) Supports(way string) bool { return slices.Contains(p.Conns, way) }

// Offers reports whether the peer has a workload.
func (p *Peer) Offers(workload string) bool { return slices.Contains(p.Workloads, workload) }

// Takes reports whether the peer supports a payload of that size in bytes.
func (p *Peer) Takes(payload int) bool { return slices.Contains(p.Payloads, payload) }
