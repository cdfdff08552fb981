package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemark-ai/tidemark"
)

// Table is what a program can do: a text that says of each command what it is called and takes, and how it is run.
// In the text
//
//	# TITLE             begins a group, which help shows below that title
//	== PATH [ARGS]      begins a command; the program itself has no path
//	: TEXT              says in a few words what it does
//	> TEXT              is an example
//	-NAME,N=DEFAULT TEXT  is a flag, with its letter and its value where it has them
//	-json SHAPE         says that it can print JSON, and of which shape
//
// and all other lines are its help. Help, completion and docs/cli.md are made of it.
type Table struct {
	Program string                       // its name
	Text    string                       // as above
	Runs    map[string]Run               // by path
	Args    map[string]func(*Main) error // how arguments are checked, by what the text says of them
	Words   func(string) string          // puts into a help what the program knows, nil for nothing
}

// Run is how a command is carried out.
type Run struct {
	flags func() any
	do    func(context.Context, *Main, any) error
	check func(*Main) error // of the arguments, instead of what the table says
	raw   bool
}

// Does carries a command out with flags, which are the exported fields of F, by their names: AllProjects is
// --all-projects, unless a tag says otherwise. Fields of embedded structs count, too.
func Does[F any](do func(context.Context, *Main, *F) error) Run {
	return Run{flags: func() any { return new(F) }, do: func(ctx context.Context, m *Main, f any) error { return do(ctx, m, f.(*F)) }}
}

// Plain carries a command out that has no flags of its own.
func Plain(do func(context.Context, *Main) error) Run {
	return Does(func(ctx context.Context, m *Main, _ *struct{}) error { return do(ctx, m) })
}

// Checked has a function look at the arguments, instead of counting them.
func (r Run) Checked(check func(*Main) error) Run {
	r.check = check
	return r
}

// Raw hides a command, and hands it all arguments as they are.
func (r Run) Raw() Run {
	r.raw, r.check = true, AnyArgs
	return r
}

// AnyArgs takes any arguments: the command looks at them itself.
func AnyArgs(*Main) error { return nil }

// row is a command as the text has it.
type row struct {
	group, path, args, short, long, example, json string
	asJSON                                        bool
	flags                                         []flagRow
}

// flagRow is a flag of one.
type flagRow struct{ name, letter, value, usage string }

var flagLine = regexp.MustCompile(`^-([a-z0-9][a-z0-9-]*)(?:,(\w))?(?:=(\S*))? (.*)$`)

// rows reads the text.
func (t Table) rows() []row {
	var rows []row
	group, text := "", t.Text
	if t.Words != nil {
		text = t.Words(text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if title, ok := strings.CutPrefix(line, "# "); ok {
			group = title
			continue
		}
		if head, ok := strings.CutPrefix(line, "=="); ok {
			at := strings.IndexFunc(head, func(r rune) bool { return r != ' ' && r != '-' && (r < 'a' || r > 'z') })
			if at < 0 {
				at = len(head)
			} else if at = strings.LastIndex(head[:at], " "); at < 0 {
				at = 0
			}
			rows = append(rows, row{group: group, path: strings.TrimSpace(head[:at]), args: strings.TrimSpace(head[at:])})
			continue
		}
		if len(rows) == 0 {
			continue // what the text says of itself
		}
		r := &rows[len(rows)-1]
		if short, ok := strings.CutPrefix(line, ": "); ok {
			r.short = short
		} else if example, ok := strings.CutPrefix(line, "> "); ok {
			r.example += "  " + example + "\n"
		} else if shape, ok := strings.CutPrefix(line, "-json"); ok {
			r.json, r.asJSON = strings.TrimSpace(shape), true
		} else if f := flagLine.FindStringSubmatch(line); f != nil {
			r.flags = append(r.flags, flagRow{f[1], f[2], f[3], f[4]})
		} else {
			r.long += line + "\n"
		}
	}
	for i := range rows {
		rows[i].long, rows[i].example = strings.TrimSpace(rows[i].long), strings.TrimRight(rows[i].example, "\n")
	}
	return rows
}

// root makes the tree of commands.
func (t Table) root(m *Main) *cobra.Command {
	root := &cobra.Command{Use: t.Program, SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(cmd *cobra.Command, args []string) { m.Cmd, m.Args, m.entered = cmd, args, true },
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	at := map[string]*cobra.Command{"": root}
	for _, r := range t.rows() {
		if r.path == "" {
			root.Short, root.Long, root.Example = r.short, r.long, r.example
			own := map[string]*string{"home": &m.Home, "config": &m.Config, "server": &m.Server}
			for _, f := range r.flags {
				root.PersistentFlags().StringVar(own[f.name], f.name, "", f.usage)
			}
			continue
		}
		above, name := "", r.path
		if i := strings.LastIndex(r.path, " "); i >= 0 {
			above, name = r.path[:i], r.path[i+1:]
		}
		c := t.command(m, r, name)
		if above == "" && r.group != "" {
			if c.GroupID = r.group; !root.ContainsGroup(r.group) {
				root.AddGroup(&cobra.Group{ID: r.group, Title: r.group})
			}
		}
		at[above].AddCommand(c)
		at[r.path] = c
	}
	return root
}

// command makes one of them.
func (t Table) command(m *Main, r row, name string) *cobra.Command {
	c := &cobra.Command{Use: strings.TrimSpace(name + " " + r.args), Short: r.short, Long: r.long, Example: r.example}
	run, ok := t.Runs[r.path]
	if !ok {
		c.Args, c.RunE = cobra.ArbitraryArgs, which
		return c
	}
	c.Hidden, c.DisableFlagParsing = run.raw, run.raw
	c.Flags().SetInterspersed(!strings.Contains(r.args, "-- ")) // what follows a command of others is that command's
	flags := run.flags()
	for _, f := range r.flags {
		bind(c.Flags(), reflect.ValueOf(flags).Elem(), f)
	}
	if r.asJSON {
		c.Flags().BoolVar(&m.JSON, "json", false, "print JSON")
	}
	check := run.check
	if check == nil {
		check = t.Args[r.args]
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if m.Cmd, m.Args = cmd, args; check != nil {
			return check(m)
		}
		return counted(cmd, r.args, args)
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return run.do(cmd.Context(), m, flags) }
	return c
}

// counted holds arguments to what is said of them: a word each, those in brackets may be left out, WORDS and what ends in
// dots are any number.
func counted(cmd *cobra.Command, want string, args []string) error {
	least, most := 0, 0
	for text := want; text != ""; {
		var word string
		may := text[0] == '['
		if may {
			word, text, _ = strings.Cut(text[1:], "]")
		} else {
			word, text, _ = strings.Cut(text, " ")
		}
		text = strings.TrimSpace(text)
		if most++; !may {
			least++
		}
		if strings.HasSuffix(word, "...") || word == "WORDS" || word == "QUERY" {
			most = math.MaxInt32
		}
	}
	switch {
	case most == 0:
		return cobra.NoArgs(cmd, args)
	case len(args) < least || len(args) > most:
		return Usagef("%s: want %s, got %s", cmd.CommandPath(), want, cmp.Or(strings.Join(args, " "), "nothing"))
	case slices.ContainsFunc(args, func(a string) bool { return strings.TrimSpace(a) == "" }):
		return Usagef("%s: want %s, and one of the words is empty", cmd.CommandPath(), want)
	}
	return nil
}

// which is what a command does that only holds others.
func which(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("%s: which one? it has %s", cmd.CommandPath(), Below(cmd))
	}
	cmd.SuggestionsMinimumDistance = 2 // cobra's own for the root; it has none for groups
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return Usagef("%s: unknown command %q; did you mean %s?", cmd.CommandPath(), args[0], strings.Join(near, " or "))
	}
	return Usagef("%s: unknown command %q; it has %s", cmd.CommandPath(), args[0], Below(cmd))
}

// Below names the commands below one.
func Below(cmd *cobra.Command) string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return strings.Join(names, ", ")
}

// bind makes a flag of the field that has its name.
func bind(fl *pflag.FlagSet, of reflect.Value, f flagRow) {
	field := fieldOf(of, f.name)
	if !field.IsValid() {
		panic("no field for the flag --" + f.name)
	}
	switch p := field.Addr().Interface().(type) {
	case *string:
		fl.StringVarP(p, f.name, f.letter, f.value, f.usage)
	case *bool:
		fl.BoolVarP(p, f.name, f.letter, false, f.usage)
	case *int:
		fl.IntVarP(p, f.name, f.letter, 0, f.usage)
	case *int64:
		fl.Int64VarP(p, f.name, f.letter, 0, f.usage)
	case *tidemark.Tokens:
		fl.Int64VarP((*int64)(p), f.name, f.letter, 0, f.usage)
	case *uint64:
		fl.Uint64VarP(p, f.name, f.letter, 0, f.usage)
	case *float64:
		fl.Float64VarP(p, f.name, f.letter, 0, f.usage)
	case *[]string:
		fl.StringSliceVarP(p, f.name, f.letter, parts(f.value), f.usage)
		return
	case *Repeated:
		fl.StringArrayVarP((*[]string)(p), f.name, f.letter, nil, f.usage)
	case *[]int:
		var list []int
		for _, one := range parts(f.value) {
			n, err := strconv.Atoi(one)
			if err != nil {
				panic(err) // a mistake in the table
			}
			list = append(list, n)
		}
		fl.IntSliceVarP(p, f.name, f.letter, list, f.usage)
		return
	}
	if flag := fl.Lookup(f.name); f.value != "" {
		if err := flag.Value.Set(f.value); err != nil {
			panic(err) // a mistake in the table
		}
		flag.DefValue = f.value
	}
}

func parts(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// fieldOf finds the field of a flag, those of embedded structs behind those of the struct.
func fieldOf(of reflect.Value, name string) reflect.Value {
	var inner []reflect.Value
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		tag := field.Tag.Get("flag")
		if field.IsExported() && (tag == name || tag == "" && kebab(field.Name) == name) && (!field.Anonymous || v.Kind() != reflect.Struct) {
			return v
		}
		if v.Kind() == reflect.Struct && (field.Anonymous || tag == "*") {
			inner = append(inner, v)
		}
	}
	for _, v := range inner {
		if found := fieldOf(v, name); found.IsValid() {
			return found
		}
	}
	return reflect.Value{}
}

// kebab writes a name of Go as that of a flag: AllProjects is all-projects.
func kebab(name string) string {
	var b strings.Builder
	last := 'A'
	for _, r := range name {
		if unicode.IsUpper(r) && !unicode.IsUpper(last) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}

// Repeated is a flag that is given once for each value, which may hold commas.
type Repeated []string

// Manual writes the table as a page, docs/cli.md: a section for a group, a paragraph for a command, a line for a flag.
func (t Table) Manual(head string) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	group, fence := "", ""
	for _, r := range t.rows() {
		if t.Runs[r.path].raw || r.path == "" {
			continue
		}
		if r.group != group {
			group = r.group
			fmt.Fprintf(&b, "%s\n## %s\n\n```text\n", fence, strings.TrimSuffix(group, ":"))
			fence = "```\n"
		} else {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimSpace(strings.Join([]string{t.Program, r.path, r.args}, " ")), r.short)
		for line := range strings.Lines(r.long + "\n") {
			if strings.TrimSpace(line) != "" {
				b.WriteString("    " + line)
			}
		}
		for _, f := range r.flags {
			name, value := "--"+f.name, ""
			if f.letter != "" {
				name = "-" + f.letter + ", " + name
			}
			if f.value != "" {
				value = " (" + f.value + ")"
			}
			fmt.Fprintf(&b, "  %s%s: %s\n", name, value, f.usage)
		}
		if r.asJSON {
			fmt.Fprintf(&b, "  --json: prints %s\n", cmp.Or(r.json, "the answer of the server as it came (docs/http.md)"))
		}
		for line := range strings.Lines(r.example) {
			b.WriteString("  $ " + strings.TrimLeft(line, " "))
		}
		if r.example != "" {
			b.WriteString("\n")
		}
	}
	b.WriteString(fence)
	return b.Bytes()
}

// Mistakes names commands that the text has and nothing carries out, unless they hold others, and those that it lacks.
func (t Table) Mistakes() (all []string) {
	text := map[string]bool{}
	for _, r := range t.rows() {
		text[r.path] = true
		holds := func(o row) bool { return strings.HasPrefix(o.path, r.path+" ") }
		if _, ok := t.Runs[r.path]; !ok && r.path != "" && !slices.ContainsFunc(t.rows(), holds) {
			all = append(all, r.path+": nothing carries it out")
		}
	}
	for path := range t.Runs {
		if !text[path] {
			all = append(all, path+": the table lacks it")
		}
	}
	return all
}
