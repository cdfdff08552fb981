package wasi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// schema is what is checked of an input before a module is troubled with it: the members that must be there and
// the types of those at the top. The rest is for the module to say.
type schema struct {
	types    map[string][]string // of each property; none means any
	required []string
	closed   bool // no other members
}

var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// parseSchema reads the schema of an object (https://json-schema.org/understanding-json-schema/reference/object).
func parseSchema(raw json.RawMessage) (schema, error) {
	var w struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional any                        `json:"additionalProperties"`
	}
	if len(raw) == 0 {
		return schema{}, wrongf("\"input_schema\" is missing; one that takes nothing is {\"type\":\"object\"}")
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return schema{}, wrongf("\"input_schema\" is no schema of an object: %v", err)
	}
	if w.Type != "object" {
		return schema{}, wrongf("\"input_schema\" has type %v; the input of a tool is an object, so want \"type\":\"object\"", w.Type)
	}
	s := schema{types: map[string][]string{}, required: w.Required, closed: w.Additional == false}
	for _, name := range slices.Sorted(maps.Keys(w.Properties)) {
		types, err := typesOf(w.Properties[name])
		if err != nil {
			return schema{}, wrongf("\"input_schema\", property %q: %v", name, err)
		}
		s.types[name] = types
	}
	return s, nil
}

// typesOf reads the type of a property: a name, a list of names, or none.
func typesOf(raw json.RawMessage) ([]string, error) {
	var p struct {
		Type json.RawMessage `json:"type"`
	}
	if string(raw) == "true" || string(raw) == "false" {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("want an object such as {\"type\":\"string\"}")
	}
	if len(p.Type) == 0 {
		return nil, nil
	}
	var types []string
	var one string
	if json.Unmarshal(p.Type, &one) == nil {
		types = []string{one}
	} else if json.Unmarshal(p.Type, &types) != nil {
		return nil, fmt.Errorf("\"type\" is %s; want a name or a list of names", p.Type)
	}
	for _, t := range types {
		if !slices.Contains(jsonTypes, t) {
			hint := ""
			if n := near.Name(t, jsonTypes); n != "" {
				hint = fmt.Sprintf("; did you mean %q?", n)
			}
			return nil, fmt.Errorf("%q is no type of JSON%s", t, hint)
		}
	}
	return types, nil
}

// wrong says what an input lacks, in words for the model; empty when nothing is wrong.
func (s schema) wrong(input json.RawMessage) string {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(input, &in); err != nil || in == nil {
		return "the input must be a JSON object"
	}
	var all []string
	for _, name := range s.required {
		if _, ok := in[name]; !ok {
			all = append(all, fmt.Sprintf("%q is missing", name))
		}
	}
	known := slices.Sorted(maps.Keys(s.types))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		types, ok := s.types[name]
		switch {
		case !ok && s.closed:
			all = append(all, unknown(name, known))
		case len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return is(t, in[name]) }):
			all = append(all, fmt.Sprintf("%q must be of type %s", name, strings.Join(types, " or ")))
		}
	}
	const most = 20
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(all, "; ")
}

func unknown(name string, known []string) string {
	const long = 100
	text := fmt.Sprintf("%q is unknown", name[:min(len(name), long)])
	if n := near.Name(name, known); n != "" {
		text += fmt.Sprintf(", did you mean %q?", n)
	}
	return text
}

// is reports whether a value has a type of JSON Schema; 1.0 and 1e2 are integers.
func is(want string, raw json.RawMessage) bool {
	if len(raw) == 0 {
		return want == "null"
	}
	switch raw[0] {
	case '"':
		return want == "string"
	case '{':
		return want == "object"
	case '[':
		return want == "array"
	case 't', 'f':
		return want == "boolean"
	case 'n':
		return want == "null"
	}
	if want != "integer" {
		return want == "number"
	}
	var f float64
	return json.Unmarshal(raw, &f) == nil && f == float64(int64(f))
}
