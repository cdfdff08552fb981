package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// clause is a condition in a statement: a column beside a parameter, a number, a text or another column.
var clause = regexp.MustCompile(`(\b(?:WHERE|AND|OR|ON|NOT)\s+|\()([a-z_][\w.]*\s*(?:=|<>|!=|<=|>=|<|>|\bLIKE|\bIS NOT|\bIS)\s*(?:\?\d*|-?\d+|'[^']*'|[a-z_][\w.]*))`)

// loose gives, for each condition in a statement, its text and the statement with it always true.
// What makes an index has none: only who looks into it would be slower. Words of English are in lower case.
func loose(sql string) (clauses, statements []string) {
	if strings.HasPrefix(sql, "CREATE ") {
		return nil, nil
	}
	for from := 0; ; {
		m := clause.FindStringSubmatchIndex(sql[from:])
		if m == nil {
			return clauses, statements
		}
		a, b := from+m[4], from+m[5]
		rest := strings.TrimLeft(sql[b:], " \n\t")
		if !strings.HasPrefix(sql[b:], "(") && !strings.HasPrefix(rest, "+") && !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "||") {
			clauses = append(clauses, sql[a:b])
			statements = append(statements, sql[:a]+"("+sql[a:b]+" OR 1)"+sql[b:])
		}
		from = a + 1
	}
}

// loosen adds a fault for each condition of a text. decl is the declaration of constants that holds it, which becomes
// one of variables.
func (s *finder) loosen(x ast.Expr, text string, decl *ast.GenDecl) {
	from, to := s.f.at(x.Pos()), s.f.at(x.End())
	clauses, statements := loose(text)
	for i, c := range clauses {
		would := strconv.Quote(statements[i])
		f := s.add("sql", x, shortened(c), func(id int, old func(from, to int) string) string {
			return fmt.Sprintf("mutantPick(%d, %s, %s)", id, old(from, to), would)
		})
		if decl != nil {
			f.keyword = s.f.at(decl.TokPos)
		}
	}
}

// constants finds statements in a declaration of constants, as long as all of it may be variables.
func (s *finder) constants(d *ast.GenDecl) {
	if d.Tok != token.CONST {
		return
	}
	type value struct {
		x    ast.Expr
		text string
	}
	var values []value
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		if len(v.Names) != 1 || len(v.Values) != 1 || s.fixed[s.p.info.Defs[v.Names[0]]] {
			return
		}
		c := s.p.info.Types[v.Values[0]].Value
		if c == nil || c.Kind() != constant.String {
			return
		}
		values = append(values, value{v.Values[0], constant.StringVal(c)})
	}
	for _, v := range values {
		s.loosen(v.x, v.text, d)
	}
}

// fixed are the constants that have to stay constants, since others stand on them or a length does.
func (p *source) fixed() map[types.Object]bool {
	out := map[types.Object]bool{}
	note := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if c, ok := p.info.Uses[id].(*types.Const); ok {
				out[c] = true
			}
		}
		return true
	}
	for i := range p.files {
		ast.Inspect(p.files[i].tree, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.GenDecl:
				if x.Tok == token.CONST {
					ast.Inspect(x, note)
				}
			case *ast.ArrayType:
				if x.Len != nil {
					ast.Inspect(x.Len, note)
				}
			}
			return true
		})
	}
	return out
}
