package trim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// The hash in the note of a picture is that of its file, whatever its size and where it stands.
func TestPictureHash(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 300, 24 << 10, 24<<10 + 1, 100_000} {
		file := bytes.Repeat([]byte{1, 2, 3, 5, 8, 13, 21}, n/7+1)[:n]
		block := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(file) + `"}}`
		in := `{"type":"user","message":{"role":"user","content":[` + block + `]}}` + "\n"
		out, cuts, _ := trimmed(t, []byte(in), Options{How: "show"})
		sum := fmt.Sprintf("%x", sha256.Sum256(file))[:12]
		want := fmt.Sprintf("[Image removed: image/png, %s bytes, sha256 %s; show %s]", thousands(int64(n)), sum, sum)
		if !strings.Contains(string(out), want) || len(cuts) != 1 || cuts[0].Handle != sum {
			t.Errorf("%d bytes: no %s in %.300s", n, want, out)
		}
		laws(t, []byte(in), Options{})
	}
}

// A way back that is too long for a note is left out, the handle is not: half a command would mislead.
func TestLongWayBack(t *testing.T) {
	in := called("t1", "Bash", `{"command":"ls"}`) + "\n" + result("t1", `"`+long(600)+`"`) + "\n"
	for how, want := range map[string]string{
		strings.Repeat("é", maxHow):   "; Bash ls; " + strings.Repeat("é", maxHow) + " ",
		strings.Repeat("é", maxHow+1): "; Bash ls; handle ",
	} {
		out, _ := laws(t, []byte(in), Options{How: how})
		if !strings.Contains(string(out), want) || strings.Contains(string(out), "…") {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

// A cut that is kept has the name of what was cut, whether its note says how to read that or not.
func TestHandleWithoutWayBack(t *testing.T) {
	body := `"` + long(600) + `"`
	in := called("t1", "Bash", `{"command":"ls"}`) + "\n" + result("t1", body) + "\n"
	_, cuts, _ := trimmed(t, []byte(in+`{"toolUseResult":`+body+"}\n"), Options{})
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))[:12]
	if len(cuts) != 2 || cuts[0].Handle != want || cuts[1].Handle != "" { // a copy has none
		t.Errorf("want a cut called %s and one that has no name, got %+v", want, cuts)
	}
}

// What a note says, by what it stands for and how long that was, with and without a way back.
func TestNotes(t *testing.T) {
	str := func(n int) string { return `"` + long(n) + `"` }
	sum := func(body string) string { return fmt.Sprintf("%x", handleOf([]byte(body))) }
	write := func(n int) string {
		return called("t1", "Write", `{"path":"/a","content":`+str(n)+`}`)
	}
	texts := func(n int) string { return `[{"type":"text","text":` + str(n) + `}]` }
	ls := called("t1", "Bash", `{"command":"l\"s"}`)
	for _, c := range []struct {
		name, how string
		in, want  string // of the last line
		before    string // the line before
	}{
		{"a short result", "", result("t1", str(199)), `"[Trimmed: ~199 chars; ` + sum(str(199)) + `]"`, ls},
		{"a long one", "", result("t1", str(200)), `"[Trimmed: ~200 chars; Bash l\"s]"`, ls},
		{"a short result and a way back", "h\"w", result("t1", str(199)), `"[Trimmed: ~199 chars; ` + sum(str(199)) + `]"`, ls},
		{"a long one and a way back", "h\"w", result("t1", str(200)), `"[Trimmed: ~200 chars; Bash l\"s; h\"w ` + sum(str(200)) + `]"`, ls},
		{"a short list", "how", result("t1", texts(199)), `[{"type":"text","text":"[Trimmed: ~199 chars; ` + sum(texts(199)) + `]"}]`, ls},
		{"a long list", "how", result("t1", texts(200)), `[{"type":"text","text":"[Trimmed: ~200 chars; Bash l\"s; how ` + sum(texts(200)) + `]"}]`, ls},
		{"a short input", "how", write(199), `"[Trimmed: ~199 chars; ` + sum(str(199)) + `]"`, user("q")},
		{"a long input", "how", write(200), `"[Trimmed: ~200 chars; how ` + sum(str(200)) + `]"`, user("q")},
		{"a long input without a way back", "", write(200), `"[Trimmed: ~200 chars]"`, user("q")},
		{"a short copy", "how", `{"toolUseResult":` + str(199) + `}`, `{"toolUseResult":"[Trimmed: ~199 chars]"}`, user("q")},
		{"a long copy", "how", `{"toolUseResult":` + str(200) + `}`, `{"toolUseResult":"[Trimmed: ~200 chars]"}`, user("q")},
		{"no base64", "", attachment(`[{"type":"image","source":{"data":"A"}}]`), `[Image removed: unknown type, no base64, handle ` + sum(`{"type":"image","source":{"data":"A"}}`) + `]"`, user("q")},
		{"no base64 and a way back", "how", attachment(`[{"type":"document","source":{"data":"A"}}]`), `[Document removed: unknown type, no base64, handle ` + sum(`{"type":"document","source":{"data":"A"}}`) + `; how ` + sum(`{"type":"document","source":{"data":"A"}}`) + `]"`, user("q")},
	} {
		// Nobody keeps the cuts: what a note says must not depend on it.
		var out bytes.Buffer
		in := c.before + "\n" + c.in + "\n"
		if _, err := Trim(t.Context(), strings.NewReader(in), int64(len(in)), &out, nil, Options{Threshold: MinThreshold, How: c.how}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), c.before+"\n") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: no %s in %s", c.name, c.want, out.String())
		}
	}
}

// A string that begins like a note is one as long as notes may be, so that a second trim changes none.
func TestNotesAreKnown(t *testing.T) {
	for _, begin := range []string{"[Trimmed: ~", "[Image removed: ", "[Document removed: "} {
		text := begin + long(noteChars-len(`""`)-len(begin))
		list := `[{"type":"text","text":"` + text + `"}]`
		same := []trimCase{
			{name: "a result " + begin, in: []string{called("t1", "B", `{"x":"`+text+`"}`), result("t1", `"`+text+`"`)}, same: true},
			{name: "a list " + begin, in: []string{called("t1", "B", `{}`), result("t1", list), `{"toolUseResult":"` + text + `"}`}, same: true},
			{name: "longer " + begin, in: []string{called("t1", "B", `{"x":"`+text+`x"}`), result("t1", `"`+text+`x"`)}, not: []string{text}, want: []string{fmt.Sprintf("~%d chars; how", noteChars-1), fmt.Sprintf("~%d chars; B; how", noteChars-1)}},
			{name: "another case " + begin, in: []string{called("t1", "B", `{}`), result("t1", `"`+strings.ToUpper(text)+`"`)}, not: []string{strings.ToUpper(text)}},
		}
		play(t, same)
	}
}

// The note of a result names pictures as long as it is no longer than notes are.
func TestPicturesFillTheNote(t *testing.T) {
	for width, want := range map[int]int{28: 6, 29: 5} {
		var blocks []string
		for i := range namedPictures {
			kind := long(40)
			if i == 5 {
				kind = long(width)
			}
			blocks = append(blocks, pictureOf(kind, "abc"))
		}
		in := called("t1", "Shot", `{}`) + "\n" + result("t1", "["+strings.Join(blocks, ",")+"]") + "\n"
		out, _ := laws(t, []byte(in), Options{})
		if got := strings.Count(string(out), "sha256 ba7816bf8f01"); got != want || !strings.Contains(string(out), fmt.Sprintf("; and %d more, 24 bytes in all); Shot]", namedPictures-want)) {
			t.Errorf("%d: %d pictures are named: %s", width, got, out)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 99_999: "99,999", 100_000: "100,000", 1_234_567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
