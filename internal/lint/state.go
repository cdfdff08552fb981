package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// stateHelp ends every finding on package state.
const stateHelp = "every object of the isolate shares it; instead: a field of the object, or a read-only table filled where it is declared (an exception goes into the table of internal/lint/bans.go)"

// immutable are types that hold pointers and yet cannot change once made.
var immutable = map[string]bool{
	"regexp.Regexp": true, "strings.Replacer": true, "time.Location": true, "time.Time": true, "embed.FS": true,
	"unicode.RangeTable": true, "encoding/base64.Encoding": true, "encoding/base32.Encoding": true,
	"encoding/hex.Encoding": true, "hash/crc32.Table": true, "net/netip.Addr": true, "net/netip.Prefix": true,
	"math/big.Int": true, "reflect.rtype": true,
}

// mutators write through their first argument.
var mutators = map[string]bool{
	"sort.Slice": true, "sort.SliceStable": true, "sort.Sort": true, "sort.Stable": true, "sort.Strings": true, "sort.Ints": true,
	"slices.Sort": true, "slices.SortFunc": true, "slices.SortStableFunc": true, "slices.Reverse": true,
	"slices.Delete": true, "slices.DeleteFunc": true, "slices.Compact": true, "slices.Insert": true,
	"maps.Copy": true, "maps.DeleteFunc": true, "maps.Insert": true,
}

// states reports package variables that can change. It looks for writes in all packages given, so
// an exported table is safe only if nobody writes it.
func states(root string, pkgs []*Package) []Finding {
	written := map[string]token.Position{}
	for _, p := range pkgs {
		if p.Info != nil {
			writes(p, written)
		}
	}
	var fs []Finding
	for _, p := range pkgs {
		if p.Info == nil {
			continue
		}
		c := &checker{root: root, pkg: p}
		for _, f := range p.Files {
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					for _, s := range g.Specs {
						c.variables(s.(*ast.ValueSpec), written)
					}
				}
			}
		}
		fs = append(fs, c.found...)
	}
	return fs
}

// variables checks one line of declarations: written anywhere, of a type that holds state, or
// pointing at something that can change.
func (c *checker) variables(spec *ast.ValueSpec, written map[string]token.Position) {
	for i, id := range spec.Names {
		o := c.pkg.Info.Defs[id]
		if id.Name == "_" || o == nil {
			continue
		}
		if at, ok := written[nameOf(o)]; ok {
			file, line := place(c.root, at)
			c.add(id.Pos(), ruleState, id.Name, fmt.Sprintf("package variable %s is written or its address is taken at %s:%d: %s", id.Name, file, line, stateHelp))
			continue
		}
		why := holds(o.Type(), map[types.Type]bool{})
		if i < len(spec.Values) {
			if t := c.pkg.Info.TypeOf(spec.Values[i]); why == "" && t != nil {
				why = holds(t, map[types.Type]bool{})
			}
			if why == "" {
				why = c.points(spec.Values[i])
			}
		}
		if why != "" {
			c.add(id.Pos(), ruleState, id.Name, fmt.Sprintf("package variable %s holds %s: %s", id.Name, why, stateHelp))
		}
	}
}

// holds says which part of a type can change behind a variable that is never written.
func holds(t types.Type, seen map[types.Type]bool) string {
	t = types.Unalias(t)
	if seen[t] {
		return ""
	}
	seen[t] = true
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() != nil {
		path := n.Obj().Pkg().Path()
		if immutable[path+"."+n.Obj().Name()] {
			return ""
		}
		if path == "sync" || path == "sync/atomic" {
			return "a " + path + "." + n.Obj().Name()
		}
		if path == "context" && n.Obj().Name() == "Context" {
			return "a context.Context"
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return "a channel"
	case *types.Pointer:
		if n := namedOf(u.Elem()); n != nil && n.Obj().Pkg() != nil && immutable[n.Obj().Pkg().Path()+"."+n.Obj().Name()] {
			return ""
		}
		return "a pointer (" + types.TypeString(t, (*types.Package).Name) + ")"
	case *types.Slice:
		return holds(u.Elem(), seen)
	case *types.Array:
		return holds(u.Elem(), seen)
	case *types.Map:
		return holds(u.Elem(), seen)
	case *types.Struct:
		for i := range u.NumFields() {
			if why := holds(u.Field(i).Type(), seen); why != "" {
				return why
			}
		}
	}
	return ""
}

// points finds state that hides behind an interface or a function in an initialiser. The bodies of
// function literals are code, not state.
func (c *checker) points(e ast.Expr) (why string) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				if t := c.pkg.Info.TypeOf(n); t != nil {
					why = holds(t, map[types.Type]bool{})
				}
			}
		case *ast.CallExpr:
			switch nameOf(c.callee(n)) {
			case "sync.OnceValue", "sync.OnceValues", "sync.OnceFunc":
				why = "a sync.Once"
			}
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "new" {
				why = "a pointer from new"
			}
		}
		return why == ""
	})
	return why
}

func (c *checker) callee(call *ast.CallExpr) types.Object { return calleeOf(c.pkg, call) }

func calleeOf(p *Package, call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	if x, ok := fun.(*ast.IndexExpr); ok {
		fun = x.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return p.Info.Uses[f]
	case *ast.SelectorExpr:
		return p.Info.Uses[f.Sel]
	}
	return nil
}

// writes notes every package variable that the package assigns, increments, takes the address of,
// or hands to something known to write.
func writes(p *Package, written map[string]token.Position) {
	note := func(e ast.Expr) {
		if v := rootVar(p, e); v != "" {
			if _, ok := written[v]; !ok {
				written[v] = p.Fset.Position(e.Pos())
			}
		}
	}
	for _, f := range p.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					note(l)
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					note(n.Key)
					note(n.Value)
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				writesByCall(p, n, note)
			}
			return true
		})
	}
}

// writesByCall notes variables changed by a builtin, by a known mutator, or by a method with a
// pointer receiver.
func writesByCall(p *Package, call *ast.CallExpr, note func(ast.Expr)) {
	o := calleeOf(p, call)
	if len(call.Args) > 0 {
		if b, ok := o.(*types.Builtin); ok {
			switch b.Name() {
			case "delete", "clear", "copy":
				note(call.Args[0])
			case "append":
				if s, ok := ast.Unparen(call.Args[0]).(*ast.SliceExpr); ok {
					note(s)
				}
			}
		} else if mutators[nameOf(o)] {
			note(call.Args[0])
		}
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	fn, ok := o.(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return
	}
	_, byPointer := fn.Signature().Recv().Type().(*types.Pointer)
	t := p.Info.TypeOf(sel.X)
	if t == nil || !byPointer {
		return
	}
	if _, already := t.Underlying().(*types.Pointer); !already {
		note(sel.X)
	}
}

// rootVar names the package variable that an expression is a part of.
func rootVar(p *Package, e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := p.Info.Uses[x.Sel].(*types.Var); ok && !v.IsField() {
				return nameOf(v)
			}
			e = x.X
		case *ast.Ident:
			if v, ok := p.Info.Uses[x].(*types.Var); ok {
				return nameOf(v)
			}
			return ""
		default:
			return ""
		}
	}
}
