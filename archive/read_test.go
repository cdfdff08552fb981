package archive_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
)

func zip(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// reference is what the reference writes: no trailing line break, its own roles and blocks.
var reference = strings.Join([]string{
	`{"role":"user","content":"list it","timestamp":1771400000000}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"thinking","thinking":"unsigned"},{"type":"text","text":"ok","thinkingSignature":"no"},{"type":"toolCall","id":"c1","name":"Bash","arguments":{"n":1.0}},{"type":"toolCall","id":"c2","name":"Read","arguments":{"path":"a"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude","usage":{"input":3,"output":5,"cacheRead":100,"cacheWrite":20,"totalTokens":128,"cost":{"total":0.1}},"stopReason":"toolUse","timestamp":1771400001000}`,
	`{"role":"toolResult","toolCallId":"c1","toolName":"Bash","content":[{"type":"text","text":"a b"}],"isError":false,"timestamp":1771400002000}`,
	`{"role":"toolResult","toolCallId":"c2","toolName":"Read","content":[{"type":"image","data":"QUJD","mimeType":"image/png"}],"isError":true,"timestamp":1771400003000}`,
	`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","r2Key":"media/k/u.png","mimeType":"image/png"}],"timestamp":1771400004000}`,
	`{"role":"user","content":"I wrote \"toolCall\" and \"mimeType\" myself"}`,
}, "\n")

func TestReference(t *testing.T) {
	want := []string{
		`{"role":"user","content":"list it"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"thinking","thinking":"unsigned"},{"type":"text","text":"ok","thinkingSignature":"no"},{"type":"tool_use","id":"c1","name":"Bash","input":{"n":1.0}},{"type":"tool_use","id":"c2","name":"Read","input":{"path":"a"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a b"}]},{"type":"tool_result","tool_use_id":"c2","content":[{"source":{"data":"QUJD","media_type":"image/png","type":"base64"},"type":"image"}],"is_error":true}]}`,
		`{"role":"user","content":[{"type":"text","text":"see"},{"type":"text","text":"[Image media/k/u.png (image/png)]"}]}`,
		`{"role":"user","content":"I wrote \"toolCall\" and \"mimeType\" myself"}`,
	}
	for name, data := range map[string][]byte{"gzip": zip(t, reference), "plain": []byte(reference)} {
		t.Run(name, func(t *testing.T) {
			var lines []archive.Line
			var messages []tidemark.Message
			for l, err := range archive.Decode(bytes.NewReader(data), archive.Limits{}) {
				if err != nil {
					t.Fatal(err)
				}
				lines, messages = append(lines, l), append(messages, l.Message)
			}
			if len(lines) != len(want) {
				t.Fatalf("%d messages, want %d", len(lines), len(want))
			}
			for i, l := range lines {
				if got := string(l.Message.AppendJSON(nil)); got != want[i] {
					t.Errorf("message %d is\n%s, want\n%s", i, got, want[i])
				}
			}
			if err := tidemark.Check(messages[:4]); err != nil {
				t.Error(err)
			}
			call := lines[1].Call
			if call == nil || call.Model != "claude" || call.Stop != "toolUse" || call.Usage != (tidemark.Usage{Input: 3, Output: 5, CacheRead: 100, CacheCreation: 20}) || !call.Reported {
				t.Errorf("call %+v", call)
			}
			if lines[2].N != 3 || lines[2].Lines != 2 || lines[3].N != 5 || lines[0].At.UnixMilli() != 1771400000000 {
				t.Errorf("lines %+v", lines)
			}
		})
	}
}

// TestReferenceBlocks: a result may be a string, and a picture that stands there as ours do stays one.
func TestReferenceBlocks(t *testing.T) {
	for line, want := range map[string]string{
		`{"role":"toolResult","toolCallId":"a","content":"x"}`: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}},{"type":"image","mimeType":"m","source":{"type":"url","url":"u"},"data":"d"},{"type":"image","mimeType":"m","r2Key":"k"}]}`: `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}},{"type":"image","mimeType":"m","source":{"type":"url","url":"u"},"data":"d"},{"type":"text","text":"[Image k (m)]"}]}`,
	} {
		for l, err := range archive.Decode(strings.NewReader(line), archive.Limits{}) {
			if got := string(l.Message.AppendJSON(nil)); err != nil || got != want {
				t.Errorf("%s, want %s, %v", got, want, err)
			}
		}
	}
}

func TestBadArchives(t *testing.T) {
	good := `{"role":"user","content":"x"}` + "\n"
	sound := zip(t, strings.Repeat(good, 100))
	flipped := bytes.Clone(sound)
	flipped[len(flipped)-6] ^= 1 // checksum
	rows := []struct {
		name   string
		data   []byte
		limits archive.Limits
		good   int
		want   error
	}{
		{"empty", nil, archive.Limits{}, 0, nil},
		{"blank lines", []byte("\n\r\n" + good + "\n\n"), archive.Limits{}, 1, nil},
		{"begins like gzip", []byte("\x1fx\n" + good), archive.Limits{}, 1, tidemark.ErrInvalid},
		{"goes on like gzip", []byte("x\x8b\n" + good), archive.Limits{}, 1, tidemark.ErrInvalid},
		{"one byte of gzip", []byte("\x1f"), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"no last break", []byte(strings.TrimSpace(good)), archive.Limits{}, 1, nil},
		{"Windows breaks", []byte(strings.ReplaceAll(good+good, "\n", "\r\n")), archive.Limits{}, 2, nil},
		{"cut off", sound[:len(sound)-12], archive.Limits{}, -1, tidemark.ErrInvalid},
		{"checksum", flipped, archive.Limits{}, 100, tidemark.ErrInvalid},
		{"garbage behind", append(bytes.Clone(sound), "garbage"...), archive.Limits{}, 100, tidemark.ErrInvalid},
		{"a bad line in between", []byte(good + "{oops\n" + good), archive.Limits{}, 2, tidemark.ErrInvalid},
		{"no role", []byte(`{"role":"","content":"x"}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"no role in the reference's dialect", []byte(`{"role":"","content":[{"type":"toolCall","id":"a","name":"b"}]}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"a system message", []byte(`{"role":"system","content":"x"}`), archive.Limits{}, 1, nil},
		{"another role", []byte(`{"role":"function","content":"x"}`), archive.Limits{}, 1, nil},
		{"result of no call", []byte(`{"role":"toolResult","content":[]}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"call without a name", []byte(`{"role":"assistant","content":[{"type":"toolCall"}]}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"call without an id", []byte(`{"role":"assistant","content":[{"type":"toolCall","name":"a"}]}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"call with an id and no name", []byte(`{"role":"assistant","content":[{"type":"toolCall","id":"a"}]}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"fields of other types", []byte(`{"role":"user","content":"x","id":7,"usage":"many"}`), archive.Limits{}, 1, nil},
		{"a result at the end", []byte(good + `{"role":"toolResult","toolCallId":"a","content":"x"}`), archive.Limits{}, 2, nil},
		{"long line", []byte(good), archive.Limits{Line: 20}, 0, tidemark.ErrTooLarge},
		{"long line over the buffer", []byte(good + `{"role":"user","content":"` + strings.Repeat("x", 200_000) + `"}`), archive.Limits{Line: 150_000}, 1, tidemark.ErrTooLarge},
		{"a line of the length that is allowed", []byte(good), archive.Limits{Line: len(good)}, 1, nil},
		{"one byte longer", []byte(good), archive.Limits{Line: len(good) - 1}, 0, tidemark.ErrTooLarge},
		{"the bytes that are allowed", []byte(good + good), archive.Limits{Bytes: int64(2 * len(good))}, 2, nil},
		{"many bytes, not packed", []byte(strings.Repeat(good, 1000)), archive.Limits{Free: 1, Ratio: 1}, 1000, nil},
		{"many bytes", []byte(good + good), archive.Limits{Bytes: 40}, 1, tidemark.ErrTooLarge},
		{"bomb", zip(t, strings.Repeat(good, 200_000)), archive.Limits{Free: 1 << 20, Ratio: 50}, -1, tidemark.ErrTooLarge},
		{"bomb, by the ratio that holds by itself", zip(t, strings.Repeat(good, 200_000)), archive.Limits{Free: 1 << 20}, -1, tidemark.ErrTooLarge},
		{"the same within bounds", zip(t, strings.Repeat(good, 20_000)), archive.Limits{}, 20_000, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			n := 0
			var bad error
			for _, err := range archive.Decode(bytes.NewReader(r.data), r.limits) {
				if err != nil {
					bad = err
					continue
				}
				n++
			}
			if !errors.Is(bad, r.want) || (bad == nil) != (r.want == nil) {
				t.Errorf("error %v, want %v", bad, r.want)
			}
			if r.good >= 0 && n != r.good {
				t.Errorf("%d messages, want %d", n, r.good)
			}
		})
	}
}

// TestBrokenSource: a connection that broke is not the end of an archive, whatever its error wraps.
func TestBrokenSource(t *testing.T) {
	broken := fmt.Errorf("read blob: connection lost: %w", io.EOF)
	text := strings.Repeat(`{"role":"user","content":"x"}`+"\n", 3)
	for name, data := range map[string][]byte{"plain": []byte(text), "gzip": zip(t, text)[:20]} {
		t.Run(name, func(t *testing.T) {
			var got error
			for _, err := range archive.Decode(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), archive.Limits{}) {
				got = err
			}
			if got == nil || !strings.Contains(got.Error(), "connection lost") {
				t.Errorf("error %v, want %v", got, broken)
			}
		})
	}
}

// FuzzDecode holds that whatever is read can be written, and then reads the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(reference))
	f.Add(zip(f, reference))
	for _, e := range talk(0, 4) {
		line, err := archive.AppendLine(nil, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte("{\"role\":\"user\",\"content\":[]}\n{\"role\":\"toolResult\",\"toolCallId\":\"a\",\"content\":\"x\"}"))
	limits := archive.Limits{Line: 1 << 20, Bytes: 4 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out []byte
		var first []archive.Line
		for l, err := range archive.Decode(bytes.NewReader(data), limits) {
			if err != nil {
				continue
			}
			first = append(first, l)
			var e error
			if out, e = archive.AppendLine(out, l.Entry()); e != nil {
				t.Fatalf("line %d was read and cannot be written: %v", l.N, e)
			}
		}
		n := 0
		for l, err := range archive.Decode(bytes.NewReader(out), archive.Limits{}) {
			if err != nil {
				t.Fatalf("what was written cannot be read: %v\n%s", err, out)
			}
			if a, b := first[n].Message.AppendJSON(nil), l.Message.AppendJSON(nil); !bytes.Equal(a, b) {
				t.Fatalf("message %d was %s, is %s", n, a, b)
			}
			if l.ID != first[n].ID || !l.At.Equal(first[n].At) {
				t.Fatalf("line %d was %+v, is %+v", n, first[n], l)
			}
			n++
		}
		if n != len(first) {
			t.Fatalf("%d messages, wrote %d", n, len(first))
		}
	})
}
