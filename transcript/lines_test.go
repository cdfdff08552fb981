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

// checkLines holds the law of Lines: the lines together are the input, by every way and bound.
func checkLines(t *testing.T, data []byte) {
	t.Helper()
	var want []string
	if len(data) > 0 {
		want = strings.SplitAfter(string(data), "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
	}
	dir := t.TempDir()
	for name, open := range inputs {
		for _, maxLine := range []int64{64, 200, 0} {
			var kinds []string
			n := 0
			off := int64(0)
			for l, err := range Lines(open(data), Options{MaxLine: maxLine, TempDir: dir}) {
				if err != nil {
					t.Fatalf("%s, %d: %v", name, maxLine, err)
				}
				var out bytes.Buffer
				if k, err := l.WriteTo(&out); err != nil || k != l.Size {
					t.Fatalf("%s, %d: line %d: wrote %d of %d, %v", name, maxLine, l.Number, k, l.Size, err)
				}
				if n >= len(want) || out.String() != want[n] || l.Offset != off || l.Number != int64(n+1) {
					t.Fatalf("%s, %d: line %d at %d is %.200q", name, maxLine, l.Number, l.Offset, out.String())
				}
				if again, err := io.ReadAll(l.Reader()); err != nil || string(again) != want[n] {
					t.Fatalf("%s, %d: reader of line %d gives %.200q, %v", name, maxLine, l.Number, again, err)
				}
				if maxLine == 64 && (l.Raw == nil) != (l.Size > 64) {
					t.Fatalf("%s: a line of %d bytes stands in memory: %v", name, l.Size, l.Raw != nil)
				}
				kinds = append(kinds, fmt.Sprint(l.Value, l.Fields, l.Inner, l.Err))
				off += l.Size
				n++
			}
			if n != len(want) {
				t.Fatalf("%s, %d: %d lines, want %d", name, maxLine, n, len(want))
			}
			if maxLine == 0 {
				continue
			}
			i := 0
			for l := range Lines(bytes.NewReader(data), Options{}) {
				if got := fmt.Sprint(l.Value, l.Fields, l.Inner, l.Err); got != kinds[i] {
					t.Fatalf("%s, %d: line %d is\n%s in pieces and\n%s in memory", name, maxLine, l.Number, kinds[i], got)
				}
				i++
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
			for _, pad := range []int{0, 200} { // in memory, and in pieces
				for l, err := range Lines(strings.NewReader(tt.line+strings.Repeat(" ", pad)), Options{MaxLine: 100}) {
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
	for _, maxLine := range []int64{64, 0} {
		for l, err := range Lines(strings.NewReader(line), Options{MaxLine: maxLine}) {
			if err != nil {
				t.Fatal(err)
			}
			content, _ := l.MessageField("content")
			var got []string
			for el, err := range l.Members(content) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, line[el.Start:el.End])
				if el.Kind != Object {
					continue
				}
				for f, err := range l.Members(el) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, f.Name, string(f.Kind))
				}
			}
			want := []string{block, "type", `"`, "text", `"`, "17", "null", "[]"}
			if !slices.Equal(got, want) {
				t.Errorf("max %d: got %q, want %q", maxLine, got, want)
			}
			n, _ := l.Field("n")
			for _, err := range l.Members(n) {
				if !errors.Is(err, tidemark.ErrInvalid) {
					t.Errorf("members of a number: %v", err)
				}
			}
		}
	}
}

func TestLineBytesAreBounded(t *testing.T) {
	for l := range Lines(strings.NewReader(`{"a":"`+strings.Repeat("x", 500)+`"}`), Options{MaxLine: 64}) {
		f, _ := l.Field("a")
		if _, err := l.Bytes(f.Start, f.End, 100); !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("want ErrTooLarge, got %v", err)
		}
		if b, err := l.Bytes(f.Start, f.End, 502); err != nil || len(b) != 502 {
			t.Errorf("got %d bytes, %v", len(b), err)
		}
		for _, bad := range [][2]int64{{-1, 2}, {3, 2}, {0, l.Size + 1}} {
			if _, err := l.Bytes(bad[0], bad[1], 100); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("bytes %v: want ErrInvalid, got %v", bad, err)
			}
		}
	}
}

func TestLinesReportTheInputsError(t *testing.T) {
	boom := errors.New("boom")
	for name, body := range map[string]string{"between lines": "{}\n{}\n", "in a line": "{}\n{\"a", "in a long line": "{}\n{\"a\":\"" + strings.Repeat("x", 300)} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			var last error
			for l, err := range Lines(io.MultiReader(strings.NewReader(body), iotest.ErrReader(boom)), Options{MaxLine: 64, TempDir: t.TempDir()}) {
				if last = err; err == nil {
					if _, err := l.WriteTo(&out); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !errors.Is(last, boom) || out.String() != body {
				t.Errorf("read %q, then %v", out.String(), last)
			}
		})
	}
	for _, err := range Lines(stalled{}, Options{}) {
		if !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("stalled input: %v", err)
		}
	}
}

type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, nil }

func TestTemporaryFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	data := []byte(`{"a":"` + strings.Repeat("x", 500) + "\"}\n" + `{"b":"` + strings.Repeat("y", 900) + `"}`)
	files := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for range Lines(inputs["pipe"](data), Options{MaxLine: 64, TempDir: dir}) {
		if files() != 1 {
			t.Errorf("%d temporary files while reading", files())
		}
		break
	}
	for range Lines(inputs["file"](data), Options{MaxLine: 64, TempDir: dir}) {
		if files() != 0 {
			t.Errorf("%d temporary files for a file", files())
		}
	}
	for range Messages(inputs["pipe"](data), Options{MaxLine: 64, TempDir: dir}) {
		t.Error("a message in a log without any")
	}
	if files() != 0 {
		t.Errorf("%d temporary files left", files())
	}
	gone := filepath.Join(dir, "gone")
	for _, err := range Lines(inputs["pipe"](data), Options{MaxLine: 64, TempDir: gone}) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no folder for the temporary file: %v", err)
		}
	}
}

func TestLinesBeginAtThePositionOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(name, []byte("{\"skip\":1}\n{\"a\":1}\n{\"b\":2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(11, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	lines := Lines(f, Options{})
	for range 2 { // the sequence of a file can be walked again
		var got []string
		for l, err := range lines {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(l.Offset, " ", string(l.Raw)))
		}
		if want := []string{"0 {\"a\":1}\n", "8 {\"b\":2}"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
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
