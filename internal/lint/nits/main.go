// Nits runs checks that neither go vet nor staticcheck includes, for go vet -vettool. An exception
// is a comment on the line, with the name of the check and the reason:
//
//	//nits:ignore nilness the panic is what the test wants
package main

import (
	"go/token"
	"strings"

	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/gostaticanalysis/nilerr"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() {
	unitchecker.Main(
		excusable(nilness.Analyzer),     // conditions that are always true or false, and certain dereferences of nil
		excusable(unusedwrite.Analyzer), // unread writes to fields of copies
		excusable(ineffassign.Analyzer), // unread assignments
		excusable(nilerr.Analyzer),      // nil returned where there is an error, and an error where there is none
	)
}

// excusable returns the check without its findings on lines with an exception for it.
func excusable(a *analysis.Analyzer) *analysis.Analyzer {
	wrapped := *a
	wrapped.Run = func(pass *analysis.Pass) (any, error) {
		excused := exceptions(pass, a.Name)
		p := *pass
		p.Report = func(d analysis.Diagnostic) {
			if at := pass.Fset.Position(d.Pos); !excused[line(at)] {
				pass.Report(d)
			}
		}
		return a.Run(&p)
	}
	return &wrapped
}

// exceptions returns the lines with an exception for the check. An exception must have a reason.
func exceptions(pass *analysis.Pass, check string) map[token.Position]bool {
	lines := make(map[token.Position]bool)
	for _, f := range pass.Files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if reason, ok := strings.CutPrefix(c.Text, "//nits:ignore "+check+" "); ok && strings.TrimSpace(reason) != "" {
					lines[line(pass.Fset.Position(c.Pos()))] = true
				}
			}
		}
	}
	return lines
}

// line is a position without its column.
func line(p token.Position) token.Position { return token.Position{Filename: p.Filename, Line: p.Line} }
