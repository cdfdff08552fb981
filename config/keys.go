package config

import (
	"cmp"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
)

// Type says what a value must be.
type Type string

// The types of keys.
const (
	Text    Type = "string"
	Number  Type = "integer"
	Switch  Type = "boolean"
	Choice  Type = "choice" // one of Key.Values
	Choices Type = "list"   // several of Key.Values
	Zone    Type = "zone"   // an IANA time zone
	URL     Type = "url"    // http or https
	Address Type = "address"
	Name    Type = "name" // lower case letters, digits, - and _
	Origins Type = "origins"
	Names   Type = "names" // short texts, none twice

	Percents Type = "percents" // ascending, for each zone one
	Rules    Type = "rules"    // of tool approval, as package approval has them
	Budget   Type = "budget"   // tokens, or a part of the window, as episodes.ParseBudget reads it
)

// Key is one setting that can be made.
type Key struct {
	Name    string // "*" stands for a name of one's own, or for each element of a list
	Type    Type
	Default string // as JSON; empty when there is none
	Values  string // allowed ones, separated by blanks; of Names an example
	Min     int64
	Max     int64
	Doc     string // one line

	to, in []int // fields of Config on the way to the value or to what has names, and those within
}

// Bounds that several keys share.
const (
	maxText  = 32 << 10 // bytes of a string
	maxNamed = 200      // policies, agents
)

//go:embed keys.txt
var keysText string

// table is what it says.
var table = readKeys(keysText)

// Keys returns every key, in the order of the documentation. Nobody may change it.
func Keys() []Key { return table }

// readKeys reads the table. What stands before the first empty line says how it is written.
func readKeys(text string) (all []Key) {
	_, text, _ = strings.Cut(text, "\n\n")
	text = strings.NewReplacer("{anthropic}", DefaultAnthropicModel, "{openai}", DefaultOpenAIModel, "{workers-ai}", DefaultWorkersAIModel,
		"{openai-vectors}", DefaultEmbeddingModel, "{workers-ai-vectors}", DefaultWorkersAIEmbedding, "{policies}", strings.Join(paging.Policies(), " ")).Replace(text)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if doc, ok := strings.CutPrefix(line, "\t"); ok {
			all[len(all)-1].Doc = doc
			continue
		}
		line, std, _ := strings.Cut(line, " = ")
		words := append(strings.SplitN(line, " ", 3), "", "")
		if line == "" {
			continue
		}
		k := Key{Name: words[0], Type: Type(words[1]), Default: std, Values: words[2]}
		if k.Type == Number {
			if _, err := fmt.Sscanf(k.Values, "%d..%d", &k.Min, &k.Max); err != nil {
				panic(fmt.Sprintf("config: bounds of %s: %v", k.Name, err)) // a broken table; each test reads it
			}
			k.Values = ""
		}
		k.find()
		all = append(all, k)
	}
	return all
}

// find finds the fields that a key goes to: they have its names, but for capitals, or those that their tags say.
func (k *Key) find() {
	t, path := reflect.TypeFor[Config](), &k.to
	for part := range strings.SplitSeq(k.Name, ".") {
		if part == "*" {
			t, path = t.Elem(), &k.in
			continue
		}
		if t.Kind() == reflect.Slice && part == "list" {
			continue
		}
		f, ok := t.FieldByNameFunc(func(name string) bool {
			f, _ := t.FieldByName(name)
			return strings.EqualFold(cmp.Or(f.Tag.Get("key"), name), part)
		})
		if !ok {
			panic("config: no field for " + k.Name)
		}
		t, *path = f.Type, append(*path, f.Index...)
	}
}

// at returns a pointer to the value of a key. What is set by it stands there when store was called: it may be in a copy of
// what a map has.
func (k Key) at(c *Config, star string) (ptr any, store func()) {
	v, store := fieldAt(reflect.ValueOf(c).Elem(), k.to), func() {}
	switch {
	case !strings.Contains(k.Name, "*"):
	case v.Kind() == reflect.Slice:
		v = reflect.ValueOf(agentAt(c, star)).Elem()
	default:
		named, name, one := v, reflect.ValueOf(star), reflect.New(v.Type().Elem()).Elem()
		if there := named.MapIndex(name); there.IsValid() {
			one.Set(there)
		} else if s, ok := one.Addr().Interface().(*MCP); ok {
			s.Enabled = true
		}
		v, store = one, func() {
			if named.IsNil() {
				named.Set(reflect.MakeMap(named.Type()))
			}
			named.SetMapIndex(name, one)
		}
	}
	return fieldAt(v, k.in).Addr().Interface(), store
}

func fieldAt(v reflect.Value, path []int) reflect.Value {
	for _, i := range path {
		v = v.Field(i)
	}
	return v
}

// names are those of one's own that a key has in a configuration, in order; of a list the places.
func (k Key) names(c *Config) (out []string) {
	v := fieldAt(reflect.ValueOf(c).Elem(), k.to)
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			out = append(out, strconv.Itoa(i))
		}
		return out
	}
	for _, name := range v.MapKeys() {
		out = append(out, name.String())
	}
	slices.Sort(out)
	return out
}

// agentAt returns the element of agents.list at a place, which is made when it is the next.
func agentAt(c *Config, star string) *Agent {
	i, err := strconv.Atoi(star)
	if err != nil || i < 0 || i >= maxNamed {
		return &Agent{}
	}
	for len(c.Agents) <= i {
		c.Agents = append(c.Agents, Agent{})
	}
	return &c.Agents[i]
}

// Variable is the name of the environment variable that overrides a key, empty for keys with names
// of one's own in them.
func (k Key) Variable() string {
	if strings.Contains(k.Name, "*") {
		return ""
	}
	return "TIDEMARK_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// want says what a value must be, in words.
func (k Key) want() string {
	switch k.Type {
	case Number:
		return "a whole number from " + strconv.FormatInt(k.Min, 10) + " to " + strconv.FormatInt(k.Max, 10)
	case Switch:
		return "true or false"
	case Choice:
		return "one of " + quoted(k.Values)
	case Choices:
		return "a list of " + quoted(k.Values) + ", at least one and none twice"
	case Zone:
		return `an IANA time zone such as "Europe/Berlin"`
	case URL:
		return `a URL such as "https://example.com/v1"`
	case Address:
		return `host and port such as "127.0.0.1:8787"`
	case Origins:
		return `a list of origins such as "http://localhost:3000", with no path and no slash at the end`
	case Names:
		return "a list of names such as " + strconv.Quote(cmp.Or(k.Values, "+49 151 23456789"))
	case Globs:
		return "a list of names with * and ? such as " + strconv.Quote(k.Values) + ", none twice"
	case Texts:
		return "a list of strings"
	case Percents:
		return "a list of three ascending percents of the window such as [30,50,60]"
	case Budget:
		return fmt.Sprintf(`tokens from %d to %d as 80000 or "80k", or "50%%" of the window`, episodes.MinBudget, episodes.MaxBudget)
	case Rules:
		return `a list of rules such as [{"tool": "files__*", "action": "ask"}]`
	case Name:
		return "1 to 64 lower case letters, digits, - and _"
	}
	return "a string"
}

func quoted(values string) string {
	return `"` + strings.ReplaceAll(values, " ", `", "`) + `"`
}

// value returns what a key has in a configuration.
func (k Key) value(c *Config, star string) any {
	ptr, _ := k.at(c, star)
	v := reflect.ValueOf(ptr).Elem()
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	return v.Interface()
}
