package peer

import (
	"fmt"
	"slices"
	"strings"
)

// Choose returns the peers that an expression names: names of peers, folders or languages, or all,
// separated by commas; those with - before them are left out. What is left out alone is left out
// of all. The order is that of the expression, and within it that of the folders.
func Choose(folders []*Folder, expression string) ([]*Peer, error) {
	var chosen []*Peer
	var out []string
	positive := false
	for term := range strings.SplitSeq(expression, ",") {
		term = strings.TrimSpace(term)
		if term == "" {
			continue
		}
		if name, ok := strings.CutPrefix(term, "-"); ok {
			out = append(out, name)
			continue
		}
		positive = true
		found, err := find(folders, term)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if !slices.Contains(chosen, p) {
				chosen = append(chosen, p)
			}
		}
	}
	if !positive {
		chosen, _ = find(folders, "all")
	}
	for _, name := range out {
		found, err := find(folders, name)
		if err != nil {
			return nil, err
		}
		chosen = slices.DeleteFunc(chosen, func(p *Peer) bool { return slices.Contains(found, p) })
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%q selects no peer: run arena list for the available ones", expression)
	}
	return chosen, nil
}

// find returns the peer with a name, else the peers of a folder, else those of a language.
func find(folders []*Folder, term string) ([]*Peer, error) {
	for _, means := range []func(p *Peer) bool{
		func(p *Peer) bool { return term == "all" || term == p.Name },
		func(p *Peer) bool { return term == p.Folder.Name },
		func(p *Peer) bool { return languageName(term) == p.Folder.LanguageName() },
	} {
		var found []*Peer
		for _, f := range folders {
			for _, p := range f.Peers {
				if means(p) {
					found = append(found, p)
				}
			}
		}
		if len(found) > 0 || term == "all" {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no peer, folder or language is named %q: available are %s", term, strings.Join(names(folders), ", "))
}

func names(folders []*Folder) []string {
	var all []string
	for _, f := range folders {
		for _, p := range f.Peers {
			all = append(all, p.Name)
		}
	}
	return all
}
