package trim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// weighed trims lines and returns what stood in the conversation before, and behind.
func weighed(t *testing.T, lines []string) (before, after weight) {
	t.Helper()
	in := []byte(strings.Join(lines, "\n") + "\n")
	r := reading{ctx: t.Context(), in: bytes.NewReader(in), size: int64(len(in))}
	r.threshold = DefaultThreshold
	v, err := r.look()
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{facts: v.facts}
	if err := l.decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := newWriter(r, &out, nil, l, "")
	if err := w.write(v.from); err != nil {
		t.Fatal(err)
	}
	if want := w.before.tokens(); w.m.LiveTokensBefore != want || w.m.LiveTokensAfter != w.after.tokens() {
		t.Errorf("%d and %d tokens of %+v and %+v", w.m.LiveTokensBefore, w.m.LiveTokensAfter, w.before, w.after)
	}
	return w.before, w.after
}

// What each kind of block weighs before a trim, and what is left of that.
func TestWeights(t *testing.T) {
	write := called("t1", "Write", `{"file_path":"/a","content":"`+long(600)+`"}`) // 631 characters
	for name, c := range map[string]struct {
		in            []string
		before, after weight
	}{
		"a string":                {[]string{user("abcd")}, weight{4, 0}, weight{4, 0}},
		"units of a text":         {[]string{assistant(`{"type":"text","text":"a\u00e9😀"}`)}, weight{4, 0}, weight{4, 0}},
		"thinking that goes":      {[]string{user("q"), assistant(thinking("hmm!") + `,{"type":"text","text":"a"}`)}, weight{6, 0}, weight{2, 0}},
		"thinking that is hidden": {[]string{user("q"), assistant(`{"type":"redacted_thinking","data":"abcdef"},{"type":"text","text":"a"}`)}, weight{8, 0}, weight{2, 0}},
		"thinking that stays": {[]string{user("q"), assistant(thinking("hm") + `,{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}`), result("t1", `"r"`)},
			weight{20, 0}, weight{20, 0}},
		"a line of thinking that goes":      {[]string{user("q"), assistant(thinking("hmm!"))}, weight{5, 0}, weight{1, 0}},
		"a call without an input":           {[]string{assistant(`{"type":"tool_use","id":"t1","name":"B"}`), result("t1", `"r"`)}, weight{3, 0}, weight{3, 0}},
		"a result of a string":              {[]string{called("t1", "Bash", `{}`), result("t1", `"`+long(600)+`"`)}, weight{602, 0}, weight{2 + 29, 0}},
		"a result of a list":                {[]string{called("t1", "Bash", `{}`), result("t1", `[{"type":"text","text":"`+long(300)+`"},{"type":"text","text":"`+long(300)+`"}]`)}, weight{602, 0}, weight{2 + 54, 0}},
		"a result without content":          {[]string{called("t1", "Bash", `{}`), `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}}`}, weight{2, 0}, weight{2, 0}},
		"a result of null":                  {[]string{called("t1", "Bash", `{}`), result("t1", `null`)}, weight{2, 0}, weight{2, 0}},
		"a result of more than texts":       {[]string{called("t1", "Bash", `{}`), result("t1", `["ab",7,null,{"type":"text","text":"abc"},{"type":"odd"},{"type":"text","text":"[Trimmed: ~9 chars]"}]`)}, weight{28, 0}, weight{28, 0}},
		"a picture beside a text in one":    {[]string{called("t1", "Shot", `{}`), result("t1", `[{"type":"text","text":"ok"},`+image(4)+`]`)}, weight{4, 1}, weight{4 + 81, 0}},
		"a large picture beside a text":     {[]string{called("t1", "Shot", `{}`), result("t1", `[{"type":"text","text":"ok"},`+image(2000)+`]`)}, weight{4, 1}, weight{2 + 110, 0}},
		"an input":                          {[]string{write}, weight{631, 0}, weight{631 + 23 - 600, 0}},
		"a picture of a person":             {[]string{`{"type":"user","message":{"role":"user","content":[` + image(4) + `,{"type":"text","text":"look"}]}}`}, weight{4, 1}, weight{4 + 81, 0}},
		"a document in words":               {[]string{`{"type":"user","message":{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}]}}`}, weight{5, 0}, weight{5, 0}},
		"a picture elsewhere":               {[]string{`{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"url","data":7,"url":"u"}}]}}`}, weight{}, weight{}},
		"a result that goes":                {[]string{user("a"), result("t9", `"rrr"`), user("b")}, weight{5, 0}, weight{2, 0}},
		"a result that goes beside a text":  {[]string{`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"t"},{"type":"tool_result","tool_use_id":"t9","content":"rr"}]}}`}, weight{3, 0}, weight{1, 0}},
		"a picture in a result that goes":   {[]string{user("a"), result("t9", `[`+image(2000)+`]`)}, weight{1, 0}, weight{1, 0}},
		"a call that comes again":           {[]string{called("t1", "B", `{}`), result("t1", `"r"`), called("t1", "B", `{}`), user("x")}, weight{6, 0}, weight{4, 0}},
		"a call without a result":           {[]string{called("t1", "B", `{}`), user("b")}, weight{3, 0}, weight{3 + 39, 0}},
		"a copy of a result":                {[]string{called("t1", "B", `{}`), `{"toolUseResult":"` + long(600) + `",` + result("t1", `"r"`)[1:]}, weight{3, 0}, weight{3, 0}},
		"blocks that say nothing":           {[]string{user("q"), assistant(`{"type":"thinking","thinking":7},{"type":"text"},{"type":"text","text":null},{"type":"text","text":"ab"}`)}, weight{3, 0}, weight{3, 0}},
		"an empty text":                     {[]string{user("q"), assistant(`{"type":"text","text":""},{"type":"text","text":"ab"}`)}, weight{3, 0}, weight{3, 0}},
		"what is no message":                {[]string{`{"type":"system","content":"abc"}`, `{"type":"attachment","message":{"role":"user","content":"abc"}}`}, weight{}, weight{}},
		"what stands before the compaction": {[]string{user("gone"), boundary, user("ab")}, weight{2, 0}, weight{2, 0}},
		"what a compaction kept":            {[]string{user("gone"), named("h", "kept1"), compacted(`"preservedMessages":["h"]`), user("ab")}, weight{7, 0}, weight{7, 0}},
		"a side chain": {[]string{side("g", "user", `{"type":"text","text":"do"},`+image(4)), side("g", "assistant", thinking("x")+`,`+bash("t1")+`,`+bash("t2")), side("g", "user", `{"type":"tool_result","tool_use_id":"t1","content":[`+image(2000)+`]}`),
			side("g", "assistant", thinking("x")+`,{"type":"text","text":"end"}`), side("g", "user", `{"type":"tool_result","tool_use_id":"t9","content":"r"}`)}, weight{}, weight{}},
	} {
		if before, after := weighed(t, c.in); before != c.before || after != c.after {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", name, before, after, c.before, c.after)
		}
	}
	if got := (weight{chars: 11, images: 2}).tokens(); got != 4+2*tidemark.ImageTokens {
		t.Errorf("%d tokens", got)
	}
}

// All that a trim counts, over a log that has one of each.
func TestMetrics(t *testing.T) {
	in := strings.Join([]string{
		user("old"), "",
		named("h", "kept"),
		compacted(`"preservedMessages":["h"]`),
		`{"type":"file-history-snapshot"}`, `{"type":"queue-operation"}`,
		user("q"),
		assistant(thinking("hm") + `,{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}`),
		`{"toolUseResult":"` + long(600) + `",` + result("t1", `"`+long(600)+`"`)[1:],
		"not json",
		assistant(`{"type":"redacted_thinking","data":"dd"},{"type":"text","text":"done"}`),
		`{"type":"user","message":{"role":"user","content":[` + image(4) + `]}}`,
		called("t2", "Write", `{"file_path":"/a","content":"`+long(600)+`"}`),
		user("stop"),
		result("t9", `"r"`),
		`{"type":"user","uuid":"z","parentUuid":"nobody","message":{"role":"user","content":"end"}}`,
	}, "\n") + "\n"
	out, m := laws(t, []byte(in), Options{How: "how"})
	want := Metrics{
		OriginalBytes: int64(len(in)), TrimmedBytes: int64(len(out)), ToolResultsStubbed: 1, SignaturesStripped: 2, FileHistoryRemoved: 1, ImagesStripped: 1,
		ToolUseInputsStubbed: 1, PreCompactionLinesSkipped: 1, QueueOperationsRemoved: 1, UserMessages: 7, AssistantResponses: 3, ToolUseRequests: 2,
		OrphansRemoved: 1, CallsRepaired: 1, CopiesStubbed: 1, LinesEmptied: 1, LinesRelinked: 1, LinesPreserved: 1, LinesUnread: 1,
		// kept 4, q 1, hm 2 and its call 16, the result, dd 2 and done 4, a picture, the input 631, stop 4, r 1, end 3
		LiveTokensBefore: tidemark.EstimateChars(4+1+18+600+6+631+4+1+3) + tidemark.ImageTokens,
		// without thinking and r; the notes of the result 50, of the picture 99 and of the input 41, and the result that was made 39
		LiveTokensAfter: tidemark.EstimateChars(4 + 1 + 16 + 50 + 4 + 99 + (631 - 600 + 41) + 39 + 4 + 3),
	}
	if m != want {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
}
