package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidemark-ai/tidemark"
)

// inputs are the ways in which a log may come: as a file, as a pipe, byte by byte.
var inputs = map[string]func([]byte) io.Reader{
	"file":    func(b []byte) io.Reader { return bytes.NewReader(b) },
	"pipe":    func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b)) },
	"trickle": func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
	"eof":     func(b []byte) io.Reader { return iotest.DataErrReader(io.MultiReader(bytes.NewReader(b))) },
}

// checkLines holds the law of Lines: the lines together are the input, by every way and bound, and a line that is within
// the bound says the same by each.
func checkLines(t *testing.T, data []byte) {
	t.Helper()
	said := map[int64]string{}
	for l := range Lines(bytes.NewReader(data), Options{}) {
		said[l.Number] = fmt.Sprint(l.Value, l.Fields, l.Inner, l.Err)
	}
	for name, open := range inputs {
		for _, maxLine := range []int64{64, 200, 0} {
			var out bytes.Buffer
			for l, err := range Lines(open(data), Options{MaxLine: maxLine}) {
				if err != nil {
					t.Fatalf("%s, %d: %v", name, maxLine, err)
				}
				if l.Offset != int64(out.Len()) || l.Size != int64(len(l.Raw)) || l.Number != int64(1+bytes.Count(out.Bytes(), []byte("\n"))) {
					t.Fatalf("%s, %d: line %d at %d is %.200q", name, maxLine, l.Number, l.Offset, l.Raw)
				}
				if l.Long && (!errors.Is(l.Err, tidemark.ErrTooLarge) || maxLine == 0) {
					t.Fatalf("%s, %d: line %d of %d bytes is long, %v", name, maxLine, l.Number, l.Size, l.Err)
				}
				if got := fmt.Sprint(l.Value, l.Fields, l.Inner, l.Err); !l.Long && got != said[l.Number] {
					t.Fatalf("%s, %d: line %d is\n%s, want\n%s", name, maxLine, l.Number, got, said[l.Number])
				}
				out.Write(l.Raw)
			}
			if !bytes.Equal(out.Bytes(), data) {
				t.Fatalf("%s, %d: %.200q", name, maxLine, out.Bytes())
			}
		}
	}
}

var nastyLogs = map[string]string{
	"empty":              "",
	"blank lines":        "\n\r\n \t\n\n",
	"no final newline":   `{"type":"user"}` + "\n" + `{"type":"assistant"}`,
	"crlf":               "{\"type\":\"user\"}\r\n{\"a\":1}\r\n",
	"lone cr":            "{\"type\":\"user\"}\r{\"a\":1}\n",
	"byte order mark":    "\xef\xbb\xbf{\"type\":\"user\"}\n{}\n",
	"only a mark":        "\xef\xbb\xbf",
	"mark in the middle": "{}\n\xef\xbb\xbf{}\n",
	"line separators":    "{\"a\":\"x\u2028y\u2029z\u0085\"}\n{}\n",
	"nul bytes":          "\x00\x00\n{\"a\":\"\x00\"}\n{}\x00\n",
	"invalid utf-8":      "{\"type\":\"us\xffer\",\"\xc3\":\"\xc3\"}\n\xff\xfe\n",
	"lone surrogates":    `{"type":"\ud800","k\udfff":1}` + "\n",
	"numbers":            `{"a":9007199254740993,"b":1e400,"c":1.0,"1":2,"0":3}` + "\n",
	"scalars":            "null\ntrue\n1\n\"x\"\n[1,2]\n",
	"cut off":            `{"type":"user","message":{"role":"user","content":"abc` + "\n{}\n",
	"not json":           "hello\n<html>\n{}\n",
	"long":               `{"type":"user","message":{"role":"user","content":"` + strings.Repeat(`long \" text `, 100) + `"},"uuid":"u"}` + "\n{}\n",
	"long and broken":    `{"type":` + strings.Repeat("x", 1000) + "\n" + `{"a":"` + strings.Repeat("y", 1000) + "\n{}",
	"long key":           `{"` + strings.Repeat("k", 250) + `":1,"` + strings.Repeat("é", 400) + `":2,"type":"user"}` + "\n",
	"long blank":         strings.Repeat(" ", 500) + "\n" + strings.Repeat(" ", 500) + "{}\n",
}

func TestLinesAreTheInput(t *testing.T) {
	for name, log := range nastyLogs {
		t.Run(name, func(t *testing.T) { checkLines(t, []byte(log)) })
	}
}

func TestLineSays(t *testing.T) {
	tests := []struct {
		name, line                    string
		kind                          Kind
		blank, invalid, boundary      bool
		typ, uuid, role, messageModel string
	}{
		{name: "user", line: `{"uuid":"u1","type":"user","message":{"content":"x","role":"user"}}`, kind: Object, typ: "user", uuid: "u1", role: "user"},
		{name: "assistant", line: `{"message":{"model":"m","type":"message","role":"assistant"},"type":"assistant"}`, kind: Object, typ: "assistant", role: "assistant", messageModel: "m"},
		{name: "human", line: `{"type":"human","message":{"content":"x"}}`, kind: Object, typ: "human", role: "user"},
		{name: "role of the message counts", line: `{"type":"user","message":{"role":"assistant"}}`, kind: Object, typ: "user", role: "assistant"},
		{name: "no type", line: `{"role":"user","content":"x"}`, kind: Object, role: "user"},
		{name: "progress holds a message", line: `{"type":"progress","role":"user","data":{"message":{"type":"assistant"}},"uuid":"p"}`, kind: Object, typ: "progress", uuid: "p"},
		{name: "escaped names and values", line: `{"t\u0079pe":"us\u0065r","\u0075uid":"\u0075"}`, kind: Object, typ: "user", uuid: "u", role: "user"},
		{name: "the last of two counts", line: `{"type":"user","type":"system","uuid":"a","uuid":"b"}`, kind: Object, typ: "system", uuid: "b"},
		{name: "boundary", line: `{"type":"system","subtype":"compact_boundary"}`, kind: Object, typ: "system", boundary: true},
		{name: "micro boundary", line: `{"type":"system","subtype":"microcompact_boundary"}`, kind: Object, typ: "system"},
		{name: "title", line: `{"type":"summary","summary":"t","leafUuid":"u"}`, kind: Object, typ: "summary"},
		{name: "unknown type", line: `{"type":"new-thing","uuid":"u"}`, kind: Object, typ: "new-thing", uuid: "u"},
		{name: "foreign kinds", line: `{"type":1,"uuid":["u"],"message":"x"}`, kind: Object},
		{name: "blank", line: "  \r", blank: true},
		{name: "broken", line: `{"type":"user"`, invalid: true},
		{name: "null", line: `null`, kind: Null},
		{name: "list", line: `[{"type":"user"}]`, kind: Array},
		{name: "number", line: `-1`, kind: Number},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, pad := range []int{0, 200} {
				for l, err := range Lines(strings.NewReader(tt.line+strings.Repeat(" ", pad)), Options{}) {
					if err != nil {
						t.Fatal(err)
					}
					role, _ := l.Role()
					model, _ := l.MessageField("model")
					got := []any{l.Value.Kind, l.Blank(), l.Err != nil, l.Boundary(), l.Type(), l.Get("uuid"), string(role), l.Text(model)}
					want := []any{tt.kind, tt.blank, tt.invalid, tt.boundary, tt.typ, tt.uuid, tt.role, tt.messageModel}
					if !slices.Equal(got, want) {
						t.Errorf("got %v, want %v", got, want)
					}
					if l.Err != nil && !errors.Is(l.Err, tidemark.ErrInvalid) {
						t.Errorf("error %v is not ErrInvalid", l.Err)
					}
				}
			}
		})
	}
}

func TestMembers(t *testing.T) {
	block := `{"type":"text","text":"` + strings.Repeat("a", 300) + `"}`
	line := `{"message":{"content":[` + block + `, 17 ,null,[]]},"n":5}`
	for l, err := range Lines(strings.NewReader(line), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		content, _ := l.MessageField("content")
		var got []string
		for el := range l.Members(content) {
			got = append(got, line[el.Start:el.End])
			for f := range l.Members(el) {
				got = append(got, f.Name, string(f.Kind))
			}
		}
		want := []string{block, "type", `"`, "text", `"`, "17", "null", "[]"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTemporaryFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	data := []byte(lineUser + "\n" + lineUser)
	files := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for range Messages(inputs["pipe"](data), Options{TempDir: dir}) {
		if files() != 1 {
			t.Errorf("%d temporary files while reading", files())
		}
		break
	}
	for range Messages(inputs["file"](data), Options{TempDir: dir}) {
		if files() != 0 {
			t.Errorf("%d temporary files for a file", files())
		}
	}
	gone := filepath.Join(dir, "gone")
	for _, err := range Messages(inputs["pipe"](data), Options{TempDir: gone}) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no folder for the temporary file: %v", err)
		}
	}
}

// TestLongLines: a line over the bound is told once, and what stands before and behind it is read.
func TestLongLines(t *testing.T) {
	log := lineUser + "\n" + `{"type":"user","message":{"role":"user","content":"` + strings.Repeat("x", 5000) + `"}}` + "\n" + lineUser + "\n"
	for name, open := range inputs {
		messages, bad := 0, 0
		for it, err := range Messages(open([]byte(log)), Options{MaxLine: 500, TempDir: t.TempDir()}) {
			var le *LineError
			switch {
			case errors.As(err, &le) && le.Line == 2 && errors.Is(err, tidemark.ErrTooLarge):
				bad++
			case err != nil:
				t.Fatal(err)
			case len(it.Lines) == 1:
				messages++
			}
		}
		if messages != 2 || bad != 1 {
			t.Errorf("%s: %d messages and %d errors", name, messages, bad)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, log := range nastyLogs {
		f.Add([]byte(log))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkLines(t, data) })
}

func TestEndsContext(t *testing.T) {
	for line, want := range map[string]bool{
		`{"type":"system","subtype":"compact_boundary"}`:      true,
		`{"type":"summary","summary":"what was said"}`:        true,
		`{"type":"summary","summary":"a title","leafUuid":1}`: false,
		`{"type":"system","subtype":"init"}`:                  false,
		`{"type":"user","leafUuid":"u"}`:                      false,
	} {
		for l, err := range Lines(strings.NewReader(line), Options{}) {
			if err != nil || l.EndsContext() != want {
				t.Errorf("%s: %t, %v", line, l.EndsContext(), err)
			}
		}
	}
}
