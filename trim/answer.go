package trim

import (
	"crypto/sha256"
	"fmt"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// sessionFields are what every line of a session says again.
var sessionFields = []string{"isSidechain", "agentId", "userType", "cwd", "sessionId", "version", "gitBranch", "slug", "timestamp"}

// noResult is what the model is told of a call whose result nobody wrote down.
const noResult = "[No result was recorded for this call.]"

// answer writes the line of a result that nobody recorded, with what the line of its call says of the session.
func (w *writer) answer(a added, l jsonscan.Line) []byte {
	found := map[string][]byte{}
	w.sub.Reset(l.Raw, l.From)
	if s := &w.sub; s.Space() == '{' && s.Open() {
		var m jsonscan.Member
		for s.Next(&m) {
			name := string(nameOf(&m))
			v, _ := w.skip(s, &m, nil) // the line was scanned before
			if v.size() <= maxText && v.kind != '{' && v.kind != '[' {
				found[name] = w.raw(v.span)
			}
		}
	}
	parent := found["uuid"]
	if heir := w.heirs[a.uuid]; heir != nil {
		parent = heir
	}
	if len(parent) <= len(`""`) || parent[0] != '"' {
		parent = []byte("null")
	}
	id := w.at(a.id)
	uuid := newUUID(id, parent)
	w.made[nameHash(uuid)] = true // an earlier trim made the same, if a line names it already
	if a.uuid != 0 {
		w.heirs[a.uuid] = []byte(`"` + uuid + `"`)
	}
	b := fmt.Appendf(nil, `{"parentUuid":%s`, parent)
	for _, name := range sessionFields {
		if v := found[name]; len(v) > 0 {
			b = fmt.Appendf(b, `,"%s":%s`, name, v)
		}
	}
	b = fmt.Appendf(b, `,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%s,"content":"%s","is_error":true}]},"uuid":"%s"}`+"\n",
		id, noResult, uuid)
	if w.h.flags&isSide == 0 {
		w.after.chars += int64(len(noResult))
	}
	if l.Raw[len(l.Raw)-1] != '\n' { // the end of the log
		b = append([]byte{'\n'}, b[:len(b)-1]...)
	}
	return b
}

// newUUID makes the id of an added line from what it stands for, so that every trim of a log makes the same.
func newUUID(id, parent []byte) string {
	sum := sha256.Sum256(append(append([]byte("tidemark no result "), id...), parent...))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
