package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// The kinds of faults.
var allKinds = []string{"negate", "bound", "sign", "constant", "assignment", "append", "call", "return", "andor", "continue", "break", "sql"}

// finder collects the places in a package where a fault can be planted.
type finder struct {
	p     *source
	f     *file
	fn    string
	found []*fault
	times map[string]int // how often a text stood in a function
	stack []ast.Node
	fixed map[types.Object]bool // constants that have to stay constants
}

// sites lists all of them, in the order of the text.
func (p *source) sites() []*fault {
	s := &finder{p: p, times: map[string]int{}, fixed: p.fixed()}
	for i := range p.files {
		s.f = &p.files[i]
		for _, d := range s.f.tree.Decls {
			s.fn = "package"
			if fd, ok := d.(*ast.FuncDecl); ok {
				s.fn = funcName(fd)
			}
			s.stack = nil
			ast.Inspect(d, s.visit)
		}
	}
	return s.found
}

// funcName is session.Session.fence without the package: a method with its type, without star and parameters.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

func (s *finder) visit(n ast.Node) bool {
	if n == nil {
		s.stack = s.stack[:len(s.stack)-1]
		return true
	}
	switch x := n.(type) {
	case *ast.GenDecl:
		s.constants(x)
		if x.Tok == token.CONST || x.Tok == token.IMPORT {
			return false
		}
	case *ast.StructType:
		return false // tags
	case *ast.IfStmt:
		if onlyLogs(x) {
			return false
		}
		s.negate(x.Cond)
	case *ast.BinaryExpr:
		s.binary(x)
	case *ast.BasicLit:
		s.literal(x)
	case *ast.BlockStmt:
		s.statements(x.List)
	case *ast.CaseClause:
		s.statements(x.Body)
	case *ast.CommClause:
		s.statements(x.Body)
	}
	s.stack = append(s.stack, n)
	return true
}

// add notes a fault at a node. mark is what is said of it beside the text.
func (s *finder) add(kind string, n ast.Node, mark string, make func(id int, old func(from, to int) string) string) *fault {
	from, to := s.f.at(n.Pos()), s.f.at(n.End())
	text := mark
	if text == "" {
		text = shortened(string(s.f.text[from:to]))
	}
	f := &fault{pkg: s.p.name, fn: s.fn, kind: kind, text: text, file: s.f, from: from, to: to, make: make, keyword: -1}
	s.times[f.String()]++
	if n := s.times[f.String()]; n > 1 {
		f.text += fmt.Sprintf(" (%d)", n)
	}
	pos := s.p.fset.Position(n.Pos())
	f.place = fmt.Sprintf("%s/%s:%d", s.p.name, filepath.Base(pos.Filename), pos.Line)
	s.found = append(s.found, f)
	return f
}

// shortened is a text on one line, cut to what tells it apart.
func shortened(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 90 {
		return string(r[:60]) + " … " + string(r[len(r)-27:])
	}
	return s
}

func (s *finder) negate(cond ast.Expr) {
	from, to := s.f.at(cond.Pos()), s.f.at(cond.End())
	s.add("negate", cond, "", func(id int, old func(from, to int) string) string {
		return fmt.Sprintf("(mutantIs(%d) != (%s))", id, old(from, to))
	})
}

// binary are bounds, signs, and and/or. What is on the inside of a duplicate is the same switch twice.
func (s *finder) binary(x *ast.BinaryExpr) {
	if s.p.info.Types[x].Value != nil {
		return
	}
	a, b, c, d := s.f.at(x.X.Pos()), s.f.at(x.X.End()), s.f.at(x.Y.Pos()), s.f.at(x.Y.End())
	var form string
	kind := "bound"
	switch x.Op {
	case token.LSS, token.GTR:
		form = "((mutantIs(%[1]d) && %[2]s == %[3]s) || %[2]s " + x.Op.String() + " %[3]s)"
	case token.LEQ, token.GEQ:
		form = "(!(mutantIs(%[1]d) && %[2]s == %[3]s) && %[2]s " + x.Op.String() + " %[3]s)"
	case token.LAND:
		kind, form = "andor", "((mutantIs(%[1]d) && ((%[2]s) || (%[3]s))) || ((%[2]s) && (%[3]s)))"
	case token.LOR:
		kind, form = "andor", "((!mutantIs(%[1]d) || ((%[2]s) && (%[3]s))) && ((%[2]s) || (%[3]s)))"
	case token.ADD, token.SUB:
		if t, ok := s.p.info.TypeOf(x).Underlying().(*types.Basic); !ok || t.Info()&types.IsNumeric == 0 {
			return
		}
		kind, form = "sign", fmt.Sprintf("mutantAdd(%%[1]d, %%[2]s, %%[3]s, %v)", x.Op == token.ADD)
	default:
		return
	}
	if kind == "bound" && calls(x) {
		return // it would act twice
	}
	s.add(kind, x, "", func(id int, old func(from, to int) string) string {
		return fmt.Sprintf(form, id, old(a, b), old(c, d))
	}).split = true
}

// calls tells whether an expression calls more than len, cap, min and max.
func calls(x ast.Expr) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			id, ok := c.Fun.(*ast.Ident)
			found = found || !ok || !strings.Contains(" len cap min max int int64 Tokens ", " "+id.Name+" ")
		}
		return !found
	})
	return found
}

// literal is a number, or the text of a statement in SQL.
func (s *finder) literal(x *ast.BasicLit) {
	if len(s.stack) > 0 {
		if a, ok := s.stack[len(s.stack)-1].(*ast.ArrayType); ok && a.Len == x {
			return
		}
	}
	t, ok := s.p.info.TypeOf(x).(*types.Basic)
	if !ok {
		return
	}
	if x.Kind == token.STRING && t.Info()&types.IsString != 0 {
		s.loosen(x, constant.StringVal(s.p.info.Types[x].Value), nil)
	}
	if x.Kind != token.INT || t.Info()&types.IsInteger == 0 || t.Info()&types.IsUntyped != 0 || s.besideError(x) {
		return
	}
	from, to := s.f.at(x.Pos()), s.f.at(x.End())
	s.add("constant", x, x.Value+" in "+s.around(x), func(id int, old func(from, to int) string) string {
		return fmt.Sprintf("(%s + %s(mutantBit(%d)))", old(from, to), t.Name(), id)
	})
}

// besideError tells whether a number is returned beside an error, where nobody reads it.
func (s *finder) besideError(x ast.Expr) bool {
	r, ok := s.stack[len(s.stack)-1].(*ast.ReturnStmt)
	if !ok {
		return false
	}
	last := r.Results[len(r.Results)-1]
	t := s.p.info.TypeOf(last)
	return last != x && t != nil && t.String() == "error"
}

// around is the text of the smallest expression or statement around one that says something.
func (s *finder) around(x ast.Node) string {
	for i := len(s.stack) - 1; i >= 0; i-- {
		switch n := s.stack[i].(type) {
		case *ast.BlockStmt, *ast.FuncDecl:
			return shortened(string(s.f.text[s.f.at(x.Pos()):s.f.at(x.End())]))
		case ast.Expr, ast.Stmt, *ast.ValueSpec:
			if text := s.f.text[s.f.at(n.Pos()):s.f.at(n.End())]; len(text) > len("a[1:]") {
				return shortened(string(text))
			}
		}
	}
	return ""
}

// statements are those that may be left out, or before which a function may end.
func (s *finder) statements(list []ast.Stmt) {
	for i, n := range list {
		from, to := s.f.at(n.Pos()), s.f.at(n.End())
		drop := func(id int, old func(from, to int) string) string {
			return fmt.Sprintf("if !mutantIs(%d) { %s }", id, old(from, to))
		}
		switch x := n.(type) {
		case *ast.AssignStmt:
			s.assignment(x, drop)
		case *ast.IncDecStmt:
			s.add("assignment", x, "", drop)
		case *ast.ExprStmt:
			if c, ok := x.X.(*ast.CallExpr); ok && !isPanic(c) && !logs(c) {
				s.add("call", x, "", drop)
			}
		case *ast.BranchStmt:
			if x.Tok == token.CONTINUE || x.Tok == token.BREAK && s.leavesLoop(x) {
				s.add(x.Tok.String(), x, x.Tok.String()+" behind "+s.guard(list[:i]), drop)
			}
			continue
		case *ast.ReturnStmt, *ast.LabeledStmt, *ast.CaseClause, *ast.CommClause:
			continue
		}
		s.leave(n)
	}
}

func (s *finder) assignment(x *ast.AssignStmt, drop func(int, func(int, int) string) string) {
	if x.Tok == token.DEFINE {
		return
	}
	kind := "assignment"
	if len(x.Rhs) == 1 {
		if c, ok := x.Rhs[0].(*ast.CallExpr); ok {
			if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "append" {
				kind = "append"
			}
		}
	}
	s.add(kind, x, "", drop)
	if x.Tok != token.ADD_ASSIGN && x.Tok != token.SUB_ASSIGN || calls(x.Lhs[0]) {
		return
	}
	if t, ok := s.p.info.TypeOf(x.Lhs[0]).Underlying().(*types.Basic); !ok || t.Info()&types.IsNumeric == 0 {
		return
	}
	a, b, c, d := s.f.at(x.Lhs[0].Pos()), s.f.at(x.Lhs[0].End()), s.f.at(x.Rhs[0].Pos()), s.f.at(x.Rhs[0].End())
	s.add("sign", x, "", func(id int, old func(from, to int) string) string {
		return fmt.Sprintf("%[2]s = mutantAdd(%[1]d, %[2]s, %[3]s, %[4]v)", id, old(a, b), old(c, d), x.Tok == token.ADD_ASSIGN)
	}).split = true
}

// logs tells whether a call is one of a logger: what it says is for people.
func logs(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "Logger"
}

// onlyLogs tells whether a condition decides about nothing but what is logged.
func onlyLogs(x *ast.IfStmt) bool {
	if x.Init != nil {
		return false
	}
	for _, n := range x.Body.List {
		e, ok := n.(*ast.ExprStmt)
		if !ok {
			return false
		}
		if c, ok := e.X.(*ast.CallExpr); !ok || !logs(c) {
			return false
		}
	}
	next, ok := x.Else.(*ast.IfStmt)
	return x.Else == nil || ok && onlyLogs(next)
}

func isPanic(c *ast.CallExpr) bool {
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

// guard is the condition of the block that statements end, for naming the place of a bare continue.
func (s *finder) guard(before []ast.Stmt) string {
	for i := len(s.stack) - 1; i >= 0; i-- {
		switch x := s.stack[i].(type) {
		case *ast.IfStmt:
			return shortened(string(s.f.text[s.f.at(x.Cond.Pos()):s.f.at(x.Cond.End())]))
		case *ast.CaseClause:
			return shortened(string(s.f.text[s.f.at(x.Case):s.f.at(x.Colon)]))
		}
	}
	if n := len(before); n > 0 {
		return shortened(string(s.f.text[s.f.at(before[n-1].Pos()):s.f.at(before[n-1].End())]))
	}
	return "nothing"
}

// leavesLoop tells whether a break ends a loop: one that ends a case only is the end of it anyway.
func (s *finder) leavesLoop(x *ast.BranchStmt) bool {
	if x.Label != nil {
		return true
	}
	for i := len(s.stack) - 1; i >= 0; i-- {
		switch s.stack[i].(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.FuncLit:
			return false
		}
	}
	return false
}

// leave ends the function before a statement, with nothing.
func (s *finder) leave(n ast.Stmt) {
	var t *ast.FuncType
	for i := len(s.stack) - 1; i >= 0 && t == nil; i-- {
		switch x := s.stack[i].(type) {
		case *ast.FuncLit:
			t = x.Type
		case *ast.FuncDecl:
			t = x.Type
		}
	}
	if t == nil {
		return
	}
	var zero []string
	if t.Results != nil {
		for _, r := range t.Results.List {
			text := "*new(" + string(s.f.text[s.f.at(r.Type.Pos()):s.f.at(r.Type.End())]) + ")"
			for range max(1, len(r.Names)) {
				zero = append(zero, text)
			}
		}
	}
	from, to, values := s.f.at(n.Pos()), s.f.at(n.End()), strings.Join(zero, ", ")
	s.add("return", n, "before "+shortened(string(s.f.text[from:to])), func(id int, old func(from, to int) string) string {
		return fmt.Sprintf("if mutantIs(%d) { return %s }; %s", id, values, old(from, to))
	})
}
