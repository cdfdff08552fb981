package provider

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// schemaRules are what an API demands of the definition of a tool. tidemark.CheckTools has the sources.
type schemaRules struct {
	key  func(key string) string // of an argument, as the API takes it; nil: any
	name func(name string) string
	full bool // an object says its properties, an array its items, and neither enum nor not stand at the top
	most int  // tools in a request, 0: any number
	none bool // no tools at all
	long int  // bytes of what a tool is described with, 0: any number
}

// emptySchema is of a tool that takes no arguments.
const emptySchema = `{"type":"object","properties":{}}`

// maxSchemaDepth bounds how deep a schema is looked into; what is deeper stays as it is.
const maxSchemaDepth = 64

// aliases are other names under which an API knows tools and their arguments.
type aliases struct {
	names map[string]string            // of tools: as sent, by their own
	keys  map[string]map[string]string // of the arguments of a tool, by its own name: as sent, by their own
}

// own is the name of a tool that the API calls so.
func (a aliases) own(name string) string {
	for own, sent := range a.names {
		if sent == name {
			return own
		}
	}
	return name
}

// keysSent are the arguments of a tool, by its own name, as the API has them.
func (a aliases) keysSent(tool string, input []byte) []byte {
	return renameKeys(input, func(key string) string { return or(a.keys[tool][key], key) }, len(a.keys[tool]) > 0)
}

// reply gives a reply the names that the tools have here.
func (a aliases) reply(m tidemark.Message) tidemark.Message {
	if len(a.names) == 0 && len(a.keys) == 0 {
		return m
	}
	blocks := slices.Clone(m.Content)
	for i, b := range blocks {
		if b.Type != tidemark.TypeToolUse {
			continue
		}
		var sets []field
		own := a.own(b.Name)
		if own != b.Name {
			sets = append(sets, field{Key: "name", Value: json.AppendString(nil, own)})
		}
		back := make(map[string]string, len(a.keys[own]))
		for key, sent := range a.keys[own] {
			back[sent] = key
		}
		input := renameKeys(b.Input, func(key string) string {
			if own, ok := back[key]; ok { // it may be empty
				return own
			}
			return key
		}, len(back) > 0)
		if !bytes.Equal(input, b.Input) {
			sets = append(sets, field{Key: "input", Value: input})
		}
		if fit := altered(b, sets); fit != nil {
			blocks[i] = *fit
		}
	}
	return tidemark.Message{Role: m.Role, Content: blocks}
}

// renameKeys renames the keys of all objects in a value.
func renameKeys(value []byte, to func(string) string, any bool) []byte {
	if !any || len(value) == 0 {
		return value
	}
	switch value[0] {
	case '{':
		out := []byte{'{'}
		_ = jsonscan.Members(value, func(key, value []byte) { // it is valid
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(json.AppendString(out, to(string(key))), ':')
			out = append(out, renameKeys(value, to, any)...)
		})
		return append(out, '}')
	case '[':
		return each(value, func(elem []byte) []byte { return renameKeys(elem, to, any) })
	}
	return value
}

// define makes the definitions of tools valid, and notes what is called otherwise there.
func (s *sending) define() {
	most := s.tools.most
	switch {
	case s.tools.none:
		most = 0
	case most == 0:
		most = len(s.Tools)
	}
	if len(s.Tools) > most {
		for _, t := range s.Tools[most:] { // ours are the first
			s.leftOut = append(s.leftOut, t.Name)
		}
		s.Tools = s.Tools[:most]
	}
	s.aliases = aliases{names: map[string]string{}, keys: map[string]map[string]string{}}
	s.Tools = slices.Clone(s.Tools)
	for i, t := range s.Tools {
		out, keys := definition(t, s.tools)
		if out.Name != t.Name {
			s.aliases.names[t.Name] = out.Name
		}
		if len(keys) > 0 {
			s.aliases.keys[t.Name] = keys
		}
		s.Tools[i] = out
	}
}

// definition is a tool as an API takes it, with the keys that it knows by other names. What is valid stays to the byte.
func definition(t tidemark.Tool, r schemaRules) (tidemark.Tool, map[string]string) {
	t.Name = r.name(t.Name)
	t, keys := defined(t, r)
	if r.long > 0 && len(t.Description) > r.long {
		t.Description = clip.To(t.Description, r.long-len("…"))
	}
	return t, keys
}

// defined is a tool with the schema and the description that say what it takes.
func defined(t tidemark.Tool, r schemaRules) (tidemark.Tool, map[string]string) {
	if len(t.InputSchema) == 0 {
		return t, nil
	}
	m := &mender{rules: r, keys: map[string]string{}}
	schema := bytes.TrimSpace(t.InputSchema)
	if len(schema) == 0 || schema[0] != '{' || !json.Valid(schema) {
		t.InputSchema = json.RawMessage(emptySchema)
		return t, nil
	}
	fit := m.schema(schema, 0)
	if !m.changed {
		fit = schema
	}
	top, ways := m.top(fit)
	if !m.changed {
		return t, nil
	}
	t.InputSchema = top
	if ways != "" {
		t.Description = strings.TrimSpace(t.Description + "\n" + ways)
	}
	return t, m.keys
}

// mender makes one schema valid.
type mender struct {
	rules   schemaRules
	keys    map[string]string // as sent, by their own
	changed bool
}

// schema is a schema, or one within it, without what JSON Schema 2020-12 does not know
// (https://json-schema.org/draft/2020-12/json-schema-validation): older drafts have other forms of some of its words.
func (m *mender) schema(raw []byte, depth int) []byte {
	if len(raw) == 0 || raw[0] != '{' || depth > maxSchemaDepth {
		return raw
	}
	var sets []field
	kind, items := "", false
	_ = jsonscan.Members(raw, func(key, value []byte) { // it is valid
		name := string(key)
		set := func(v []byte) {
			if !bytes.Equal(v, value) {
				sets = append(sets, field{Key: name, Value: v})
			}
		}
		switch name {
		case "type":
			fit := kinds(value)
			if kind = scalar(fit); bytes.Contains(fit, []byte(`"array"`)) { // one of several
				kind = "array"
			}
			set(fit)
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			set(m.members(name, value, depth))
		case "items":
			if items = value[0] != '['; !items { // a tuple has another name now
				sets = append(sets, field{Key: name, Value: nil}, field{Key: "prefixItems", Value: m.list(value, depth)})
				return
			}
			set(m.one(value, depth))
		case "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems":
			set(m.one(value, depth))
		case "anyOf", "oneOf", "allOf", "prefixItems":
			set(m.list(value, depth))
		case "required":
			set(m.required(value))
		default:
			if !formed(name, value) {
				set(nil)
			}
		}
	})
	if m.rules.full && kind == "array" && !items {
		sets = append(sets, field{Key: "items", Value: []byte("{}")}) // "array schema missing items"
	}
	if len(sets) == 0 {
		return raw
	}
	m.changed = true
	return jsonscan.Set(nil, raw, sets...)
}

// kinds is the value of "type": one of the seven names or a list of them, in whatever letters it came; nil for anything else.
func kinds(value []byte) []byte {
	names := []string{"null", "boolean", "object", "array", "number", "string", "integer"}
	if value[0] == '"' {
		if name := strings.ToLower(scalar(value)); slices.Contains(names, name) {
			return json.AppendString(nil, name)
		}
		return nil
	}
	var fit, as []string
	for _, e := range elements(value) {
		name := strings.ToLower(scalar(e))
		if as = append(as, name); slices.Contains(names, name) && !slices.Contains(fit, name) {
			fit = append(fit, name)
		}
	}
	switch {
	case len(fit) == 0:
		return nil
	case slices.Equal(fit, as) && bytes.Equal(bytes.ToLower(value), value):
		return value
	}
	return namesJSON(fit)
}

// forms are the words of JSON Schema whose values have one form, by how such a value begins.
var forms = map[string][]string{
	"-0123456789": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	`"`:           {"title", "description", "format", "pattern", "$ref", "$id", "$schema", "$anchor", "$comment", "contentEncoding", "contentMediaType"},
	"tf":          {"uniqueItems", "deprecated", "readOnly", "writeOnly"},
	"[":           {"enum"},
}

// counts are the words whose values are whole numbers from 0 on.
var counts = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}

// formed reports whether the value of a word of JSON Schema has the form that it must have.
func formed(word string, value []byte) bool {
	if slices.Contains(counts, word) {
		n, err := strconv.ParseFloat(string(value), 64)
		return err == nil && n >= 0 && n == math.Trunc(n)
	}
	for first, words := range forms {
		if slices.Contains(words, word) {
			return strings.IndexByte(first, value[0]) >= 0
		}
	}
	return true
}

// members are the schemas of an object of them, nil for none.
func (m *mender) members(of string, value []byte, depth int) []byte {
	if value[0] != '{' {
		return nil
	}
	out, changed := []byte{'{'}, false
	_ = jsonscan.Members(value, func(key, sub []byte) { // it is valid
		name := string(key)
		fit, sent := m.one(sub, depth), name
		if of == "properties" && m.rules.key != nil {
			sent = m.rules.key(name)
		}
		if sent != name {
			m.keys[name] = sent
			fit = titled(fit, name)
		}
		if fit == nil {
			fit = []byte("{}")
		}
		changed = changed || sent != name || !bytes.Equal(fit, sub)
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(json.AppendString(out, sent), ':'), fit...)
	})
	if !changed {
		return value
	}
	return append(out, '}')
}

// titled says in a schema what its member is called, unless it has a title.
func titled(schema []byte, name string) []byte {
	if len(schema) == 0 || schema[0] != '{' || jsonscan.Find(schema, "title") != nil {
		return schema
	}
	return jsonscan.Set(nil, schema, field{Key: "title", Value: json.AppendString(nil, name)})
}

// one is a schema where one may stand, nil for what is none.
func (m *mender) one(value []byte, depth int) []byte {
	switch value[0] {
	case '{':
		return m.schema(value, depth+1)
	case 't', 'f':
		return value
	}
	return nil
}

// list are the schemas of a list that may not be empty, nil for none.
func (m *mender) list(value []byte, depth int) []byte {
	if value[0] != '[' {
		return nil
	}
	changed := false
	out := each(value, func(elem []byte) []byte {
		fit := m.one(elem, depth)
		changed = changed || !bytes.Equal(fit, elem)
		return fit
	})
	switch {
	case len(out) == len("[]"):
		return nil
	case !changed:
		return value
	}
	return out
}

// required is a list of names, nil for anything else: before draft 4 it was true beside the member.
func (m *mender) required(value []byte) []byte {
	var names []string
	if json.Unmarshal(value, &names) != nil || value[0] != '[' {
		return nil
	}
	if m.rules.key == nil {
		return value
	}
	sent := make([]string, len(names))
	for i, n := range names {
		sent[i] = m.rules.key(n)
	}
	if slices.Equal(names, sent) {
		return value
	}
	return namesJSON(sent)
}

func namesJSON(names []string) []byte {
	out := []byte{'['}
	for i, n := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = json.AppendString(out, n)
	}
	return append(out, ']')
}
