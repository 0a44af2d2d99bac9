package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Load reads every peer.json below root/arena/peers. A mistake in one of them is an error: a peer
// that is left out silently would look like one that lost.
func Load(root string) ([]*Folder, error) {
	files, err := filepath.Glob(filepath.Join(root, "arena", "peers", "*", "peer.json"))
	if err != nil {
		return nil, err
	}
	var folders []*Folder
	var mistakes []error
	for _, file := range files {
		f, err := read(root, file)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		folders = append(folders, f)
	}
	mistakes = append(mistakes, twice(folders)...)
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return folders, nil
}

// read reads one file and checks it.
func read(root, file string) (*Folder, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	name := file
	if relative, err := filepath.Rel(root, file); err == nil {
		name = filepath.ToSlash(relative)
	}
	f := new(Folder)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", name, line(text, offset(d, err)), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: line %d: want exactly one object", name, line(text, d.InputOffset()))
	}
	f.Path = filepath.Dir(file)
	f.Name = filepath.Base(f.Path)
	for _, p := range f.Peers {
		if p != nil {
			p.Folder = f
		}
	}
	var mistakes []error
	for _, mistake := range f.mistakes(root) {
		mistakes = append(mistakes, fmt.Errorf("%s: %s", name, mistake))
	}
	return f, errors.Join(mistakes...)
}

// offset returns where the decoder stopped.
func offset(d *json.Decoder, err error) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return syntax.Offset
	case errors.As(err, &kind):
		return kind.Offset
	}
	return d.InputOffset()
}

func line(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n"))
}

// twice finds peers of one name, in one folder or in two, and peers with the name of a folder that
// is not theirs: what --peers would mean by it could not be told.
func twice(folders []*Folder) []error {
	var mistakes []error
	owner := make(map[string]string)
	for _, f := range folders {
		for _, p := range f.Peers {
			if other, ok := owner[p.Name]; ok {
				mistakes = append(mistakes, fmt.Errorf("two peers are named %s, in %s and in %s: rename one", p.Name, other, f.Name))
			}
			owner[p.Name] = f.Name
		}
	}
	for _, f := range folders {
		if in, ok := owner[f.Name]; ok && in != f.Name {
			mistakes = append(mistakes, fmt.Errorf("the folder %s has the name of a peer in %s: rename one", f.Name, in))
		}
	}
	return mistakes
}

var (
	nameForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	languageForm = regexp.MustCompile(`^[a-z][a-z0-9+#]*$`)
)

// mistakes checks everything that the decoder does not.
func (f *Folder) mistakes(root string) []string {
	var m mistakes
	m.when(f.Contract == 0, `"contract" is missing: write 1`)
	m.when(f.Contract != 0 && f.Contract != Contract, `"contract" is %d, and this arena follows %d`, f.Contract, Contract)
	m.when(f.Framework == "", `"framework" is missing`)
	m.when(f.Version == "", `"version" is missing: name the exact version of the framework`)
	m.when(!languageForm.MatchString(f.Language), `"language" is %q: write go, java, cpp or the like`, f.Language)
	m.when(len(f.Needs) == 0, `"needs" is missing: name the programs that build and run it`)
	for _, need := range f.Needs {
		m.when(need == "" || need == "pkg:" || strings.ContainsAny(need, "/ "), `"needs" holds %q: write the name of a program, or pkg:NAME`, need)
	}
	for i, command := range f.Build {
		m.when(len(command) == 0 || command[0] == "", `"build" has no command at position %d`, i+1)
	}
	for _, pattern := range f.Inputs {
		m.input(root, pattern)
	}
	m.when(len(f.Peers) == 0, `"peers" is missing`)
	for i, p := range f.Peers {
		if p == nil {
			m.when(true, `"peers" holds null at position %d`, i+1)
			continue
		}
		p.mistakes(&m, i)
	}
	return m
}

func (p *Peer) mistakes(m *mistakes, i int) {
	if !nameForm.MatchString(p.Name) {
		m.when(true, `the name of peer %d is %q: use lower-case letters, digits and -`, i+1, p.Name)
		return
	}
	m.when(p.Settings == "", `%s: "settings" is missing`, p.Name)
	m.when(p.Reason == "", `%s: "reason" is missing: explain why this setting is the fastest`, p.Name)
	m.when(len(p.Server) == 0 || p.Server[0] == "", `%s: "server" is missing`, p.Name)
	m.when(len(p.Client) == 0 || p.Client[0] == "", `%s: "client" is missing`, p.Name)
	m.when(p.Codec == "", `%s: "codec" is missing`, p.Name)
	m.oneOf(p.Name, "workloads", p.Workloads, Say, Add)
	m.oneOf(p.Name, "conns", p.Conns, Shared, Pool, Each, Fresh)
	if slices.Contains(p.Workloads, Say) {
		m.when(!slices.Contains(p.Payloads, StandardPayload), `%s: "payloads" lacks %d, which every peer with the workload say has`, p.Name, StandardPayload)
	}
	for _, size := range p.Payloads {
		m.when(size < 64, `%s: "payloads" holds %d: 64 is the least`, p.Name, size)
	}
	m.when(p.MaxConns < 0, `%s: "max_conns" is %d: leave it out where any number is served`, p.Name, p.MaxConns)
	m.when(p.MaxCallsPerConn < 0, `%s: "max_calls_per_conn" is %d: leave it out where any number is carried`, p.Name, p.MaxCallsPerConn)
	m.when(p.WarmupS <= 0, `%s: "warmup_s" is missing: seconds until it is at its full speed, 1 for what is compiled ahead`, p.Name)
}

// mistakes is a list of sentences.
type mistakes []string

func (m *mistakes) when(wrong bool, format string, args ...any) {
	if wrong {
		*m = append(*m, fmt.Sprintf(format, args...))
	}
}

func (m *mistakes) oneOf(peer, field string, values []string, allowed ...string) {
	m.when(len(values) == 0, `%s: %q is missing: name those of %s that it supports`, peer, field, strings.Join(allowed, ", "))
	for i, v := range values {
		m.when(!slices.Contains(allowed, v), `%s: %q holds %q: use %s`, peer, field, v, strings.Join(allowed, ", "))
		m.when(slices.Contains(values[:i], v), `%s: %q holds %q twice`, peer, field, v)
	}
}

// input checks a pattern of Inputs. One that finds nothing is a mistake: it would hide changes.
func (m *mistakes) input(root, pattern string) {
	if pattern == "" || filepath.IsAbs(pattern) || !filepath.IsLocal(pattern) {
		m.when(true, `"inputs" holds %q: write paths relative to the root of the repository`, pattern)
		return
	}
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	m.when(err != nil, `"inputs" holds %q: %v`, pattern, err)
	m.when(err == nil && len(found) == 0, `"inputs" holds %q, and there is no such file`, pattern)
}
