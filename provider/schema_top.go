package provider

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// arguments is what arguments a schema describes, by itself or in one of several ways.
type arguments struct {
	names    []string          // of properties, in order
	schemas  map[string][]byte // of each
	required []string
	ways     []string // what must be given beside, in words
	steps    *int     // how many more schemas are looked at: references may lead to each other in a great many ways
}

// maxSteps bounds the schemas that are looked at to make one.
const maxSteps = 500

// top makes a schema one of an object that says so itself: neither API takes alternatives at the top, nor an object that
// is one by reference only. What they say is merged: every argument that any of them has may be given, those that all of
// them demand must be, and ways says in words what the schema cannot any more.
func (m *mender) top(schema []byte) (out []byte, ways string) {
	kind := jsonscan.Find(schema, "type")
	odd := scalar(kind) != "object"
	for _, word := range [...]string{"anyOf", "oneOf", "allOf"} {
		odd = odd || jsonscan.Find(schema, word) != nil
	}
	if m.rules.full {
		odd = odd || jsonscan.Find(schema, "properties") == nil || jsonscan.Find(schema, "enum") != nil || jsonscan.Find(schema, "not") != nil
	}
	if !odd {
		return schema, ""
	}
	m.changed = true
	steps := maxSteps
	a := arguments{schemas: map[string][]byte{}, steps: &steps}
	a.add(schema, schema, 0)
	props := []byte{'{'}
	for i, n := range a.names {
		if i > 0 {
			props = append(props, ',')
		}
		props = append(append(json.AppendString(props, n), ':'), a.schemas[n]...)
	}
	sets := []field{{Key: "type", Value: []byte(`"object"`)}, {Key: "properties", Value: append(props, '}')}, {Key: "anyOf"}, {Key: "oneOf"}, {Key: "allOf"}, {Key: "$ref"}}
	if m.rules.full {
		sets = append(sets, field{Key: "enum"}, field{Key: "not"})
	}
	if len(a.required) > 0 {
		sets = append(sets, field{Key: "required", Value: namesJSON(a.required)})
	} else {
		sets = append(sets, field{Key: "required"})
	}
	return jsonscan.Set(nil, schema, sets...), strings.Join(a.ways, "\n")
}

// add takes up what a schema demands; root is where its references lead.
func (a *arguments) add(schema, root []byte, depth int) {
	const most = 8
	if *a.steps--; *a.steps < 0 {
		return
	}
	if schema = resolved(schema, root); depth > most || len(schema) == 0 || schema[0] != '{' {
		return
	}
	if props := jsonscan.Find(schema, "properties"); len(props) > 0 && props[0] == '{' {
		_ = jsonscan.Members(props, func(key, value []byte) { a.put(string(key), value) }) // it is valid
	}
	var names []string
	if json.Unmarshal(jsonscan.Find(schema, "required"), &names) == nil {
		a.demand(names)
	}
	for _, sub := range elements(jsonscan.Find(schema, "allOf")) {
		a.add(sub, root, depth+1)
	}
	for _, word := range [...]string{"anyOf", "oneOf"} {
		a.either(elements(jsonscan.Find(schema, word)), root, depth+1)
	}
}

// either takes up alternatives.
func (a *arguments) either(list [][]byte, root []byte, depth int) {
	var all []string
	var said []string
	for i, sub := range list {
		one := arguments{schemas: map[string][]byte{}, steps: a.steps}
		one.add(sub, root, depth)
		for _, n := range one.names {
			a.put(n, one.schemas[n])
		}
		if i == 0 {
			all = one.required
		}
		all = slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(one.required, n) })
		given := one.required
		if len(given) == 0 {
			given = one.names
		}
		if text := strings.Join(given, " and "); text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	a.demand(all)
	if len(said) > 1 {
		a.ways = append(a.ways, "Arguments: give either "+strings.Join(said, ", or ")+".")
	}
}

// put takes up an argument; one that has several schemas may be any of them.
func (a *arguments) put(name string, schema []byte) {
	old, ok := a.schemas[name]
	switch {
	case !ok:
		a.names = append(a.names, name)
		a.schemas[name] = schema
	case !bytes.Equal(old, schema):
		a.schemas[name] = slices.Concat([]byte(`{"anyOf":[`), old, []byte{','}, schema, []byte(`]}`))
	}
}

func (a *arguments) demand(names []string) {
	for _, n := range names {
		if !slices.Contains(a.required, n) {
			a.required = append(a.required, n)
		}
	}
}

// elements are those of a list, none of anything else.
func elements(list []byte) (out [][]byte) {
	if len(list) > 0 && list[0] == '[' {
		_ = jsonscan.Elements(list, func(elem []byte) { out = append(out, elem) }) // it is valid
	}
	return out
}

// resolved follows a reference within the schema, such as #/$defs/Order.
func resolved(schema, root []byte) []byte {
	const most = 8
	for range most {
		if len(schema) == 0 || schema[0] != '{' {
			return schema
		}
		path, ok := strings.CutPrefix(scalar(jsonscan.Find(schema, "$ref")), "#/")
		if !ok {
			return schema
		}
		at := root
		for _, name := range strings.Split(path, "/") {
			if len(at) == 0 || at[0] != '{' {
				return schema
			}
			at = jsonscan.Find(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
		if len(at) == 0 {
			return schema
		}
		schema = at
	}
	return schema
}
