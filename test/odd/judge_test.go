package odd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// refusal is how an API declines a request.
type refusal struct {
	rule      string // of the documentation, for the count; empty: it is none of those
	at        string // the place in the request, as the API names it
	text      string
	placeless bool // the API never says where
	sure      bool // it always does
}

// piece is a part of the messages that an API may name: what it holds, and how it is named.
type piece struct {
	at, kind string
	raw      []byte
}

// definition is a tool as the API was told of it.
type definition struct {
	name   string
	schema map[string]json.RawMessage // of its arguments, by name
}

// asked is a request as a judge read it.
type asked struct {
	model    *model
	body     []byte
	most     int // tokens of the reply
	tokens   int // of all that was sent
	pictures int
	hidden   int // bytes of media, which count otherwise
	tools    []definition
	calls    []string // ids in the messages
	pieces   []piece
	prompt   string // text of the last message
}

// summary reports a request for a summary, or for memories.
func (a *asked) summary() bool { return len(a.tools) == 0 && strings.Contains(a.prompt, "<memories>") }

// judge knows what the APIs gave: that they take back.
type judge struct {
	signed   map[string]string // thinking, by its signature
	redacted map[string]bool
	kinds    map[string]bool // types of blocks
	fields   map[string]bool // of blocks, as type.field
	looked   map[string]seen
	checked  map[string]string // schemas, with what is wrong with them
	loads    map[string]int    // of pictures by address
}

func newJudge() *judge {
	return &judge{signed: map[string]string{}, redacted: map[string]bool{}, kinds: map[string]bool{}, fields: map[string]bool{}, looked: map[string]seen{}, checked: map[string]string{}, loads: map[string]int{}}
}

// weigh counts tokens as the model does, and declines what does not fit its window.
func (a *asked) weigh() *refusal {
	const picture = 1500
	a.tokens = int(float64(len(a.body)-a.hidden)/a.model.perToken) + a.pictures*picture
	if a.tokens <= a.model.window && a.tokens+a.most <= a.model.window {
		return nil
	}
	return &refusal{}
}

// members are those of an object; ok is false for anything else.
func members(raw []byte) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	ok := len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &m) == nil
	return m, ok
}

func items(raw []byte) ([]json.RawMessage, bool) {
	var l []json.RawMessage
	ok := len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &l) == nil
	return l, ok
}

func textOf(raw []byte) (string, bool) {
	var s string
	ok := len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	return s, ok
}

// number is a JSON number that is whole.
func number(raw []byte) (int, bool) {
	var n int
	ok := len(raw) > 0 && raw[0] != '"' && json.Unmarshal(raw, &n) == nil
	return n, ok
}

// extra is the first field that is not among those that are known, empty for none.
func extra(m map[string]json.RawMessage, known ...string) string {
	var odd []string
	for name := range m {
		if !slices.Contains(known, name) {
			odd = append(odd, name)
		}
	}
	slices.Sort(odd)
	if len(odd) == 0 {
		return ""
	}
	return odd[0]
}

// Patterns of the documentation.
var (
	messagesID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	toolName     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	longToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	propertyKey  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// schema says what is wrong with the schema of a tool, empty for nothing.
func (j *judge) schema(raw []byte, chat bool) string {
	key := fmt.Sprint(chat, string(raw))
	fault, ok := j.checked[key]
	if !ok {
		fault = schemaFault(raw, chat)
		j.checked[key] = fault
	}
	return fault
}

func schemaFault(raw []byte, chat bool) string {
	m, ok := members(raw)
	if !ok {
		return "Input should be a valid dictionary"
	}
	if kind, _ := textOf(m["type"]); kind != "object" {
		return "type: Input should be 'object'"
	}
	top := []string{"oneOf", "anyOf", "allOf"}
	if chat {
		top = append(top, "enum", "not")
	}
	for _, word := range top {
		if m[word] != nil {
			return "does not support oneOf, allOf, or anyOf at the top level"
		}
	}
	props, ok := members(m["properties"])
	switch {
	case m["properties"] != nil && !ok:
		return "properties: Input should be a valid dictionary"
	case chat && !ok:
		return "object schema missing properties"
	}
	for name := range props {
		if !chat && !propertyKey.MatchString(name) {
			return "properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
		}
	}
	return drafted(raw, chat, "")
}

// Words of JSON Schema by the form that their value has to have
// (https://json-schema.org/draft/2020-12/json-schema-validation and …/json-schema-core).
var (
	schemaOf   = []string{"additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	schemasOf  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	numberOf   = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	countOf    = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
	stringOf   = []string{"$ref", "$id", "$schema", "$anchor", "$comment", "title", "description", "format", "pattern", "contentEncoding", "contentMediaType"}
	boolOf     = []string{"uniqueItems", "deprecated", "readOnly", "writeOnly"}
	types      = []string{"null", "boolean", "object", "array", "number", "string", "integer"}
)

// drafted holds a schema against draft 2020-12.
func drafted(raw []byte, chat bool, at string) string {
	if s := string(raw); s == "true" || s == "false" {
		return ""
	}
	m, ok := members(raw)
	if !ok {
		return "JSON schema is invalid at " + at
	}
	for word, value := range m {
		if fault := draftedWord(word, value, chat, at+"/"+word); fault != "" {
			return fault
		}
	}
	if kind, _ := textOf(m["type"]); chat && kind == "array" && m["items"] == nil {
		return "array schema missing items at " + at
	}
	return ""
}

func draftedWord(word string, value []byte, chat bool, at string) string {
	bad := "JSON schema is invalid. It must match JSON Schema draft 2020-12: " + at
	fine := true
	switch {
	case word == "type":
		fine = isType(value)
	case word == "required":
		var names []string
		fine = value[0] == '[' && json.Unmarshal(value, &names) == nil
	case word == "enum":
		_, fine = items(value)
	case slices.Contains(numberOf, word):
		var n float64
		fine = json.Unmarshal(value, &n) == nil && value[0] != '"' && value[0] != 'n'
	case slices.Contains(countOf, word):
		n, ok := number(value)
		fine = ok && n >= 0
	case slices.Contains(stringOf, word):
		_, fine = textOf(value)
	case slices.Contains(boolOf, word):
		fine = string(value) == "true" || string(value) == "false"
	case slices.Contains(schemaOf, word):
		return drafted(value, chat, at)
	case slices.Contains(schemasOf, word):
		m, ok := members(value)
		for name, sub := range m {
			if fault := drafted(sub, chat, at+"/"+name); fault != "" {
				return fault
			}
		}
		fine = ok
	case slices.Contains(schemaList, word):
		l, ok := items(value)
		for _, sub := range l {
			if fault := drafted(sub, chat, at); fault != "" {
				return fault
			}
		}
		fine = ok && len(l) > 0
	}
	if fine {
		return ""
	}
	return bad
}

func isType(value []byte) bool {
	if one, ok := textOf(value); ok {
		return slices.Contains(types, one)
	}
	l, ok := items(value)
	seen := map[string]bool{}
	for _, raw := range l {
		one, isText := textOf(raw)
		ok = ok && isText && slices.Contains(types, one) && !seen[one]
		seen[one] = true
	}
	return ok && len(l) > 0
}
