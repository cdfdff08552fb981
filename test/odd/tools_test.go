package odd

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/mcp"
)

// server is what the names of the odd server's tools begin with.
const server = "bazaar"

// bazaar is a server of tools whose schemas and results are odd.
type bazaar struct {
	more int // tools beside those that are odd
	net  *api
}

// oddSchemas are schemas as servers have them, by the name of the tool.
var oddSchemas = [][2]string{
	{"any", `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}`},
	{"one", `{"type":"object","oneOf":[{"required":["x"]},{"required":["y"]}],"properties":{"x":{"type":"string"},"y":{"type":"string"}}}`},
	{"untyped", `{"properties":{"q":{"type":"string"}}}`},
	{"list of types", `{"type":["object","null"],"properties":{"q":{"type":["string","null"]}}}`},
	{"odd.names", `{"type":"object","properties":{"the key":{"type":"string"},"schlüssel":{"type":"string"},"a/b":{"type":"object","properties":{"c d":{"type":"string"}}}},"required":["the key"]}`},
	{"draft-4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true},"l":{"type":"array","items":[{"type":"string"},{"type":"integer"}]},"r":{"type":"string","required":true}}}`},
	{"by reference", `{"$ref":"#/$defs/In","$defs":{"In":{"type":"object","properties":{"id":{"type":"string"}}}}}`},
	{"lists", `{"type":"object","properties":{"ids":{"type":"array"},"m":{"type":"array","items":{"type":"array"}}}}`},
	{"empty", `{}`},
	{"choice", `{"type":"object","enum":[{}],"not":{"required":["z"]},"properties":{"z":{"enum":["a","b"]}}}`},
	{"bare", `{"type":"object"}`},
	{"look", `{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"}},"required":["path"],"additionalProperties":false}`},
	{"sloppy", `{"type":"object","properties":{"a":"string","b":null,"c":{"type":"String"},"d":{"type":"string","minLength":"3","description":7},"e":{"type":"object","properties":[]}},"required":"a"}`},
}

// Tools implements toolbox.Source.
func (b bazaar) Tools(context.Context) ([]tidemark.Tool, error) {
	var out []tidemark.Tool
	for _, s := range oddSchemas {
		out = append(out, tidemark.Tool{Name: s[0], Description: "Gives something of the kind " + s[0] + ".", InputSchema: json.RawMessage(s[1])})
	}
	for i := range b.more {
		out = append(out, tidemark.Tool{Name: fmt.Sprintf("more-%03d", i), Description: "One of many.", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
	}
	return out, nil
}

// Call implements toolbox.Source: what comes hangs on the call alone, since calls run side by side.
func (b bazaar) Call(_ context.Context, call tidemark.Block) (tidemark.Block, error) {
	b.net.arrives()
	h := fnv.New64a()
	_, _ = h.Write(append([]byte(call.Name), call.Input...)) // a hash takes all
	r := rand.New(rand.NewPCG(h.Sum64(), 7))
	if r.IntN(12) == 0 {
		return tidemark.Block{}, fmt.Errorf("the bazaar is closed: %w", tidemark.ErrUnavailable)
	}
	return mcp.Result(call.ID, json.RawMessage(oddResult(r)))
}

// oddResult is a result of MCP as servers give them.
func oddResult(r *rand.Rand) string {
	text := `{"type":"text","text":` + jsonText(wordsOf(r.IntN, 30)) + `}`
	picture := func() string {
		p := gallery[r.IntN(len(gallery))]
		return `{"type":"image","mimeType":` + jsonText(p.media) + `,"data":` + jsonText(p.data) + `}`
	}
	failed := ""
	if r.IntN(5) == 0 {
		failed = `,"isError":true`
	}
	var content string
	switch r.IntN(11) {
	case 0:
		content = "[" + text + "," + picture() + "]"
	case 1:
		content = "[" + picture() + "," + picture() + "," + text + "]"
	case 2:
		content = `[{"type":"text","text":` + jsonText(strings.Repeat(wordsOf(r.IntN, 500)+"\n", 12)) + `}]`
	case 3:
		content = `[{"type":"audio","mimeType":"audio/wav","data":"UklGRg=="},` + text + `]`
	case 4:
		content = `[{"type":"hologram","depth":3},` + text + `,{"type":"text","text":7},null,"a bare text"]`
	case 5:
		content = `[{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///b","text":"b"}},{"type":"resource","resource":{"uri":"file:///c","blob":"AAAA"}}]`
	case 6:
		content = `[{"type":"text","text":" "},{"type":"text","text":""}]`
	case 7:
		content = `[]`
	case 8:
		content = text
	case 9:
		content = `[{"type":"text","text":` + jsonText(text) + `,"annotations":{"audience":["user"]},"_meta":{"x":1}}]`
	default:
		content = "[" + text + "]"
	}
	return `{"content":` + content + failed + `,"structuredContent":{"n":1e1}}`
}
