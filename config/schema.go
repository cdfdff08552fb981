package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// node is an object of the JSON Schema, in the order of the table.
type node struct {
	names    []string
	children map[string]*node
	key      *Key
}

func (n *node) child(name string) *node {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	if n.children[name] == nil {
		n.children[name] = &node{}
		n.names = append(n.names, name)
	}
	return n.children[name]
}

// Schema returns the JSON Schema of the document (https://json-schema.org/draft/2020-12).
func Schema() []byte {
	root := &node{}
	for _, k := range Keys() {
		at := root
		for _, part := range strings.Split(k.Name, ".") {
			at = at.child(part)
		}
		at.key = &k
	}
	var b strings.Builder
	b.WriteString("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": \"Tidemark configuration\",\n")
	root.body(&b, "  ", `    "$schema": { "type": "string" },`+"\n")
	b.WriteString("}\n")
	return []byte(b.String())
}

// body writes what is inside of an object's braces.
func (n *node) body(b *strings.Builder, indent, first string) {
	star := n.children["*"]
	switch {
	case star != nil && star.children["id"] != nil: // a list
		fmt.Fprintf(b, "%s\"type\": \"array\",\n%s\"maxItems\": %d,\n%s\"items\": {\n", indent, indent, maxNamed, indent)
		star.body(b, indent+"  ", "")
		fmt.Fprintf(b, "%s}\n", indent)
		return
	case star != nil && star.key != nil: // values by names of one's own
		fmt.Fprintf(b, "%s\"type\": \"object\",\n%s\"additionalProperties\": %s\n", indent, indent, star.key.schema())
		return
	case star != nil: // objects by names of one's own
		fmt.Fprintf(b, "%s\"type\": \"object\",\n%s\"additionalProperties\": {\n", indent, indent)
		star.body(b, indent+"  ", "")
		fmt.Fprintf(b, "%s}\n", indent)
		return
	}
	fmt.Fprintf(b, "%s\"type\": \"object\",\n%s\"additionalProperties\": false,\n", indent, indent)
	if n.children["id"] != nil && n.children["systemPrompt"] != nil {
		fmt.Fprintf(b, "%s\"required\": [\"id\"],\n", indent)
	}
	fmt.Fprintf(b, "%s\"properties\": {\n%s", indent, first)
	for i, name := range n.names {
		comma := ","
		if i == len(n.names)-1 {
			comma = ""
		}
		c := n.children[name]
		if c.key != nil {
			fmt.Fprintf(b, "%s  %q: %s%s\n", indent, name, c.key.schema(), comma)
			continue
		}
		fmt.Fprintf(b, "%s  %q: {\n", indent, name)
		c.body(b, indent+"    ", "")
		fmt.Fprintf(b, "%s  }%s\n", indent, comma)
	}
	fmt.Fprintf(b, "%s}\n", indent)
}

// schema returns the schema of one key, on one line.
func (k Key) schema() string {
	var parts []string
	add := func(name string, v any) {
		raw, err := json.Marshal(v)
		if err == nil {
			parts = append(parts, fmt.Sprintf("%q: %s", name, raw))
		}
	}
	switch k.Type {
	case Number:
		add("type", "integer")
		add("minimum", k.Min)
		add("maximum", k.Max)
	case Switch:
		add("type", "boolean")
	case Choice:
		add("enum", strings.Fields(k.Values))
	case Choices:
		add("type", "array")
		add("minItems", 1)
		add("uniqueItems", true)
		add("items", map[string]any{"enum": strings.Fields(k.Values)})
	case Rules:
		add("type", "array")
		add("maxItems", approval.MaxRules)
		add("items", json.RawMessage(`{"type":"object","additionalProperties":false,"required":["tool","action"],"properties":{"tool":{"type":"string"},"action":{"enum":["allow","ask","deny"]},"when":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["path","op","value"],"properties":{"path":{"type":"string"},"op":{"enum":["equals","contains","startsWith","glob"]},"value":{"type":"string"}}}}}}`))
	case Origins:
		add("type", "array")
		add("maxItems", maxNamed)
		add("uniqueItems", true)
		add("items", map[string]any{"type": "string", "pattern": "^[a-z][a-z0-9+.-]*://[^/]+$"})
	case Names:
		add("type", "array")
		add("maxItems", maxNamed)
		add("uniqueItems", true)
		add("items", map[string]any{"type": "string", "minLength": 1, "maxLength": 256})
	case Globs, Texts:
		add("type", "array")
		add("maxItems", maxNamed)
		add("uniqueItems", k.Type == Globs)
		add("items", map[string]any{"type": "string", "maxLength": map[Type]int{Globs: approval.MaxGlob, Texts: maxArgument}[k.Type]})
	case Percents:
		add("type", "array")
		add("minItems", zoneCount)
		add("maxItems", zoneCount)
		add("items", map[string]any{"type": "integer", "minimum": 1, "maximum": 100})
	case Budget:
		add("type", []string{"integer", "string"})
		add("minimum", episodes.MinBudget)
		add("maximum", episodes.MaxBudget)
		add("pattern", "^([1-9][0-9]{3,8}|[1-9][0-9]{0,5}[kK]|([1-9][0-9]?|100)%)$")
	case URL:
		add("type", "string")
		add("format", "uri")
	case Name:
		add("type", "string")
		add("pattern", "^[a-z0-9_-]{1,64}$")
	default:
		add("type", "string")
	}
	if k.Default != "" {
		add("default", json.RawMessage(k.Default))
	}
	add("description", k.Doc)
	return "{ " + strings.Join(parts, ", ") + " }"
}

// Value is one key as it is now.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // null when it is not set
	Origin string `json:"from"`  // default, file:line:column, or a variable
	Doc    string `json:"-"`
}

// Values returns every key as it is now, those of one's own names included. Secrets are not among
// them.
func (c *Config) Values() []Value {
	var out []Value
	add := func(k Key, name, star string) {
		v := k.value(c, star)
		if v == "" {
			v = nil
		}
		out = append(out, Value{Key: name, Value: v, Origin: cmp.Or(c.Origin[name], "default"), Doc: k.Doc})
	}
	for _, k := range Keys() {
		before, behind, many := strings.Cut(k.Name, ".*")
		if !many {
			add(k, k.Name, "")
			continue
		}
		for _, star := range k.names(c) {
			name := before + "." + star + behind
			if before == "agents.list" {
				name = before + "[" + star + "]" + behind
			}
			if c.Origin[name] != "" {
				add(k, name, star)
			}
		}
	}
	return out
}
