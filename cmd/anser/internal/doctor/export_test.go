package doctor

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// asserted are the findings that tests have looked for and found.
var asserted struct {
	mu   sync.Mutex // guards list
	list []Finding
}

// Asserted notes that a test has asserted the finding.
func Asserted(f Finding) {
	asserted.mu.Lock()
	defer asserted.mu.Unlock()
	asserted.list = append(asserted.list, f)
}

// site is a place in the source that adds a finding.
type site struct {
	at     token.Position
	check  string // "" for any
	status Status
	text   *regexp.Regexp
}

// Unasserted returns the places in the source whose findings no test has asserted so far.
func Unasserted() (places []string, err error) {
	sites, err := sites()
	if err != nil {
		return nil, err
	}
	asserted.mu.Lock()
	defer asserted.mu.Unlock()
	for _, s := range sites {
		if !s.isAsserted() {
			places = append(places, fmt.Sprintf("%s: %s %s %q", s.at, s.status, s.check, s.text))
		}
	}
	return places, nil
}

func (s *site) isAsserted() bool {
	for _, f := range asserted.list {
		if (s.check == "" || f.Check == s.check) && f.Status == s.status && s.text.MatchString(f.Text) {
			return true
		}
	}
	return false
}

// sites returns the calls of add, pass, note and once in the source of this package.
func sites() (list []site, err error) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "report.go" { // which defines the functions
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(files, name, text, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok {
				if s, ok := siteOf(f.Sel.Name, call.Args); ok {
					s.at = files.Position(call.Pos())
					list = append(list, s)
				}
			}
			return true
		})
	}
	return list, nil
}

// siteOf returns what a call says of its finding.
func siteOf(name string, args []ast.Expr) (s site, ok bool) {
	switch {
	case len(args) < 2:
		return s, false
	case name == "pass":
		s.status, s.text = Pass, textOf(args[1])
	case name == "note":
		s.status, s.text = Note, textOf(args[1])
	case (name == "add" || name == "once") && len(args) >= 4:
		status, isName := args[1].(*ast.Ident)
		if !isName || status.Name != strings.ToUpper(status.Name[:1])+status.Name[1:] { // passed on
			return s, false
		}
		s.status, s.text = Status(strings.ToLower(status.Name)), textOf(args[3])
	default:
		return s, false
	}
	if lit, ok := args[0].(*ast.BasicLit); ok {
		s.check, _ = strconv.Unquote(lit.Value)
	}
	return s, true
}

// verbs are those of package fmt.
var verbs = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// textOf returns a pattern for the texts of an expression: of its literals, as formats.
func textOf(e ast.Expr) *regexp.Regexp {
	var pattern func(e ast.Expr) string
	pattern = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			return pattern(e.X) + pattern(e.Y)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(e.Value); err == nil {
				parts := verbs.Split(text, -1)
				for i := range parts {
					parts[i] = regexp.QuoteMeta(parts[i])
				}
				return strings.Join(parts, ".*")
			}
		}
		return ".*"
	}
	return regexp.MustCompile("(?s)" + pattern(e))
}
