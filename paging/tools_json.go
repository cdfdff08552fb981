package paging

import (
	"fmt"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// kinds are the kinds of tools as ReadTools names them.
var kinds = map[string]Kind{"looks": Looks, "reads": Reads, "changes": Changes}

// ReadTools reads rows for [Tools.With] from JSON:
//
//	{"NAME":{"kind":"reads"|"changes"|"looks","path":["FIELD",…],"verb":"FIELD","views":["WORD",…],"patch":"FIELD"}}
//
// All but kind may be left out; without path the usual names of fields are looked for. What is wrong is
// tidemark.ErrInvalid, with the name and the field.
func ReadTools(data []byte) (map[string]Tool, error) {
	c := over(data)
	rows := map[string]Tool{}
	seen := map[string]string{}
	if !c.Open('{') {
		c.Fail(`want an object of tools, such as {"peek":{"kind":"reads","path":["file"]}}`)
	}
	for c.More() {
		name := string(c.Key())
		from := c.At()
		c.Skip()
		if c.Err() != nil {
			break
		}
		row, err := readTool(c.Since(from))
		switch other, twice := seen[near.Plain(name)]; {
		case err != nil:
			return nil, fmt.Errorf("tool %.60q: %w", name, err)
		case near.Plain(name) == "":
			return nil, fmt.Errorf("tool %.60q: want a name with a letter: %w", name, tidemark.ErrInvalid)
		case twice:
			return nil, fmt.Errorf("tool %.60q is %.60q again, since capitals, _ and - do not count: give one of them: %w", name, other, tidemark.ErrInvalid)
		}
		rows[name], seen[near.Plain(name)] = row, name
	}
	if c.Err() == nil && c.Peek() != 0 {
		c.Fail("more than one value: want one object of tools")
	}
	return rows, c.Err()
}

// readTool reads a row from one value of JSON.
func readTool(data []byte) (t Tool, err error) {
	c := over(data)
	if !c.Open('{') {
		return t, fmt.Errorf(`want an object with kind: %w`, tidemark.ErrInvalid)
	}
	given := false
	for c.More() {
		field := string(c.Key())
		from := c.At()
		c.Skip()
		var into any
		word, want := "", "the name of a field of the input"
		switch field {
		case "kind":
			given, into, want = true, &word, "reads, changes or looks"
		case "path":
			into, want = &t.Path, "a list of names of fields of the input"
		case "verb":
			into = &t.Verb
		case "views":
			into, want = &t.Views, "a list of words, those of verb that only read"
		case "patch":
			into = &t.Patch
		default:
			return t, fmt.Errorf("unknown field %.60q: want kind, path, verb, views or patch: %w", field, tidemark.ErrInvalid)
		}
		bad := json.Unmarshal(c.Since(from), into) != nil
		if field == "kind" && !bad {
			k, known := kinds[word]
			t.Kind, bad = k, !known
		}
		if bad {
			return t, fmt.Errorf("%s is %.60s: want %s: %w", field, c.Since(from), want, tidemark.ErrInvalid)
		}
	}
	if !given {
		return t, fmt.Errorf("kind is missing: want reads, changes or looks: %w", tidemark.ErrInvalid)
	}
	return t, nil
}
