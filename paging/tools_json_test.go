package paging

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestReadTools: rows that are read act as those of the table, and what is wrong is named.
func TestReadTools(t *testing.T) {
	rows, err := ReadTools([]byte(` {"peek":{"kind":"reads","path":["what"]}, "Read":{"kind":"looks"},
		"ed":{"kind":"changes","verb":"do","views":["show"]}} `))
	if err != nil {
		t.Fatal(err)
	}
	table := DefaultTools().With(rows)
	for _, row := range []struct {
		tool, input string
		kind        Kind
		path        string
	}{
		{"peek", `{"what":"/a"}`, Reads, "/a"},
		{"mcp__x__Peek", `{"what":"/a"}`, Reads, "/a"},
		{"Read", `{"file_path":"/a"}`, Looks, ""},
		{"ed", `{"do":"show","path":"/a"}`, Reads, "/a"},
		{"ed", `{"do":"write","path":"/a"}`, Changes, "/a"},
		{"Edit", `{"file_path":"/a"}`, Changes, "/a"},
	} {
		if c := table.Call(row.tool, []byte(row.input)); c.Kind != row.kind || c.Path != row.path {
			t.Errorf("%s %s: kind %d of %q, want %d of %q", row.tool, row.input, c.Kind, c.Path, row.kind, row.path)
		}
	}
	for _, row := range []struct{ in, want string }{
		{`[]`, "want an object of tools"},
		{``, "want an object of tools"},
		{`{"a":{"kind":"reads"}} {}`, "more than one value"},
		{`{"a":{"kind":"reads"}`, "byte"},
		{`{"a":"reads"}`, `tool "a": want an object`},
		{`{"a":{}}`, `tool "a": kind is missing`},
		{`{"a":{"kind":"read"}}`, `tool "a": kind is "read": want reads, changes or looks`},
		{`{"a":{"kind":"reads","path":"file"}}`, `path is "file": want a list`},
		{`{"a":{"kind":"reads","paths":["file"]}}`, `unknown field "paths"`},
		{`{"":{"kind":"reads"}}`, "want a name"},
		{`{"my_read":{"kind":"reads"},"MyRead":{"kind":"looks"}}`, "again"},
	} {
		if _, err := ReadTools([]byte(row.in)); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.in, err, row.want)
		}
	}
}
