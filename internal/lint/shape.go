package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxMethods is how many methods a type may have; one with more is several types.
const MaxMethods = 60

// crowds are the types that have more, with the number that they may not pass and why they have it. It only falls.
var crowds = map[string]struct {
	most int
	why  string
}{
	"session.Session": {269, "the rooms around the core are still methods of it"},
}

// Bounds of the package session, which only fall.
const (
	maxSessionFields = 12  // of the type Session
	maxSessionArrows = 376 // uses of another file's declarations within cycles of files
)

// borrowers are the packages whose statements name tables of another one, which is the owner because it creates them.
var borrowers = map[string]string{
	"session host":           "its own rows are joined to the entries of the log in one statement",
	"lineage host":           "what a log continues is a row of the log, and how long a history is its entries tell",
	"window session":         "what was learned is a field of heads, written with the prompt that it has made anew",
	"lineage session":        "a track of a client's conversation is a row of heads",
	"room/task host":         "its revisions are entries of the log",
	"room/episodes host":     "when an episode began is when its entries were logged",
	"room/sittings host":     "what was said in a sitting is entries of the log",
	"room/vectors host":      "it makes vectors of entries of the log",
	"room/snapshots host":    "a place is entries of a log, and an archive brings some",
	"room/snapshots session": "it reads heads and runs of the branches it makes and holds against each other, and puts its own row of due off",
	"room/toolset session":   "a list is as old as the prompt, which heads name",
	"room/outbound session":  "it looks at inputs for who wrote since, notes lines that it says once as such, and its row of due goes with the last row that waits",
	"room/search host":       "what it finds is entries of the log",
	"room/search session":    "the index of words is made with the session's tables, and what is due and what runs says how far it is",
	"room/vectors session":   "it puts its own row of due off",
}

// Shape is what [Shapes] counts.
type Shape struct {
	Methods map[string]int      // by type, without tests
	Fields  int                 // of session.Session
	Tables  map[string][]string // packages that create them
	named   map[string]Finding  // statements that name a table, by package and table
}

// ShapeOf reads the Go files of the repository, tests and what only tests link apart.
func ShapeOf(root string, files []string) (s Shape) {
	s = Shape{Methods: map[string]int{}, Tables: map[string][]string{}, named: map[string]Finding{}}
	fset := token.NewFileSet()
	for _, file := range files {
		pkg := path.Dir(file)
		at := slices.IndexFunc(table, func(r row) bool { return r.pkg == pkg })
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") || at >= 0 && table[at].test {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // removed while we looked
		}
		f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
		if err != nil {
			continue // Budgets says so
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					s.Methods[pkg+"."+receiver(n.Recv.List[0].Type)]++
				}
			case *ast.TypeSpec:
				if t, ok := n.Type.(*ast.StructType); ok && pkg == "session" && n.Name.Name == "Session" {
					s.Fields = t.Fields.NumFields()
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					s.sql(pkg, n.Value, Finding{File: file, Line: fset.Position(n.Pos()).Line, Rule: "shape"})
				}
			}
			return true
		})
	}
	return s
}

var (
	created = regexp.MustCompile(`CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)`)
	worked  = regexp.MustCompile(`\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)`)
)

// sql notes the tables that a string names.
func (s *Shape) sql(pkg, text string, f Finding) {
	for _, m := range created.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(s.Tables[m[1]], pkg) {
			s.Tables[m[1]] = append(s.Tables[m[1]], pkg)
		}
	}
	for _, m := range worked.FindAllStringSubmatch(text, -1) {
		f.Name = m[1]
		s.named[pkg+" "+m[1]] = f
	}
}

func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// String lists the largest types, the fields of Session and how many tables each package owns.
func (s Shape) String() string {
	owned := map[string]int{}
	for _, by := range s.Tables {
		owned[strings.Join(by, "+")]++
	}
	return fmt.Sprintf("methods %s; fields of Session %d; tables %s", most(s.Methods, 8), s.Fields, most(owned, 20))
}

// most lists the n largest.
func most(of map[string]int, n int) string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = name + " " + strconv.Itoa(of[name])
	}
	return strings.Join(names[:min(n, len(names))], ", ")
}

// Shapes holds types to their number of methods, and tables to their owners.
func Shapes(s Shape) (fs []Finding) {
	add := func(file, name, format string, args ...any) {
		fs = append(fs, Finding{File: file, Rule: "shape", Name: name, Text: fmt.Sprintf(format, args...)})
	}
	for name, n := range s.Methods {
		limit := max(MaxMethods, crowds[name].most)
		if n > limit {
			add(name, name, "%d methods, at most %d; it is several types", n, limit)
		}
	}
	if s.Fields > maxSessionFields {
		add("session.Session", "Session", "%d fields, at most %d; what a room needs lies in the room", s.Fields, maxSessionFields)
	}
	for name, by := range s.Tables {
		if len(by) > 1 {
			add(strings.Join(by, ", "), name, "table %s is created in %d packages; one of them owns it", name, len(by))
		}
	}
	for key, f := range s.named {
		pkg, name, _ := strings.Cut(key, " ")
		if by := s.Tables[name]; len(by) > 0 && !slices.Contains(by, pkg) && borrowers[pkg+" "+by[0]] == "" {
			f.Text = fmt.Sprintf("table %s is %s's; ask it", name, by[0])
			fs = append(fs, f)
		}
	}
	return fs
}

// Arrows counts the pairs of files of a package of which the first uses a declaration of the second, and those of them
// that lie on a cycle of files, which run up in whatever order the files are put.
func Arrows(p *Package) (all, up int) {
	uses := map[string]map[string]bool{}
	for id, obj := range p.Info.Uses {
		from, to := p.Fset.Position(id.Pos()).Filename, ""
		if obj.Pkg() == p.Types && obj.Pos().IsValid() {
			to = p.Fset.Position(obj.Pos()).Filename
		}
		if to == "" || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	for _, tos := range uses {
		all += len(tos)
	}
	for from := range uses {
		reached, next := map[string]bool{}, []string{from}
		for len(next) > 0 {
			f := next[len(next)-1]
			next = next[:len(next)-1]
			for to := range uses[f] {
				if !reached[to] {
					reached[to], next = true, append(next, to)
				}
			}
		}
		for other, tos := range uses {
			if reached[other] && tos[from] {
				up++ // other uses from, and from reaches other
			}
		}
	}
	return all, up
}
