package layout_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"testing"
)

// The root package subtracts times with Sub and shifts them with Add: arithmetic on a mono.Time
// mixes times with durations, which the compiler does not notice.
func TestTimesAreNotNumbers(t *testing.T) {
	fset, files, info := checkRoot(t)
	isTime := func(e ast.Expr) bool {
		v := info.Types[e]
		return v.Value == nil && v.Type != nil && v.Type.String() == core+"/internal/mono.Time"
	}
	seen := false
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			bad := false
			switch n := n.(type) {
			case *ast.BinaryExpr:
				switch n.Op {
				case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
					bad = isTime(n.X) || isTime(n.Y)
				}
			case *ast.AssignStmt:
				bad = n.Tok != token.ASSIGN && n.Tok != token.DEFINE && isTime(n.Lhs[0])
			case *ast.CallExpr:
				seen = seen || isTime(n)
				bad = info.Types[n.Fun].IsType() && isTime(n.Args[0]) && !types.IsInterface(info.Types[n.Fun].Type)
			}
			if bad {
				t.Errorf("%s: arithmetic on a time, or a conversion of it: use the methods Add, Sub and Nanoseconds of mono.Time", fset.Position(n.Pos()))
			}
			return true
		})
	}
	if !seen {
		t.Error("no call returns a time: the test looks for the wrong type")
	}
}
