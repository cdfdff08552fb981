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

// sample is six messages, with the fields that other programs write and without a trailing line break.
var sample = strings.Join([]string{
	`{"role":"user","content":"list it","timestamp":1771400000000}`,
	`{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"c1","name":"Bash","input":{"n":1.0}}],"api":"anthropic-messages","model":"claude","stopReason":"tool_use","usage":{"input_tokens":3,"output_tokens":5},"timestamp":1771400001000}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a b"}],"timestamp":1771400002000}`,
	`{"role":"assistant","content":"done","timestamp":1771400003000}`,
	`{"role":"user","content":[{"type":"text","text":"see"}],"timestamp":1771400004000}`,
	`{"role":"user","content":"I wrote \"toolCall\" and \"mimeType\" myself"}`,
}, "\n")

func TestSample(t *testing.T) {
	for name, data := range map[string][]byte{"gzip": zip(t, sample), "plain": []byte(sample)} {
		t.Run(name, func(t *testing.T) {
			var lines []archive.Line
			for l, err := range archive.Decode(bytes.NewReader(data), archive.Limits{}) {
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, l)
			}
			if len(lines) != 6 || lines[2].N != 3 || lines[0].At.UnixMilli() != 1771400000000 {
				t.Fatalf("lines %+v", lines)
			}
			call := lines[1].Call
			if call == nil || call.Model != "claude" || call.Stop != "tool_use" || call.Usage != (tidemark.Usage{Input: 3, Output: 5}) || !call.Reported {
				t.Errorf("call %+v", call)
			}
		})
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
		{"no last break", []byte(strings.TrimSpace(good)), archive.Limits{}, 1, nil},
		{"Windows breaks", []byte(strings.ReplaceAll(good+good, "\n", "\r\n")), archive.Limits{}, 2, nil},
		{"cut off", sound[:len(sound)-12], archive.Limits{}, -1, tidemark.ErrInvalid},
		{"checksum", flipped, archive.Limits{}, 100, tidemark.ErrInvalid},
		{"garbage behind", append(bytes.Clone(sound), "garbage"...), archive.Limits{}, 100, tidemark.ErrInvalid},
		{"a bad line in between", []byte(good + "{oops\n" + good), archive.Limits{}, 2, tidemark.ErrInvalid},
		{"no role", []byte(`{"role":"","content":"x"}`), archive.Limits{}, 0, tidemark.ErrInvalid},
		{"a system message", []byte(`{"role":"system","content":"x"}`), archive.Limits{}, 1, nil},
		{"another role", []byte(`{"role":"function","content":"x"}`), archive.Limits{}, 1, nil},
		{"fields of other types", []byte(`{"role":"user","content":"x","id":7,"usage":"many"}`), archive.Limits{}, 1, nil},
		{"long line", []byte(good), archive.Limits{Line: 20}, 0, tidemark.ErrTooLarge},
		{"long line over the buffer", []byte(good + `{"role":"user","content":"` + strings.Repeat("x", 200_000) + `"}`), archive.Limits{Line: 150_000}, 1, tidemark.ErrTooLarge},
		{"a line of the length that is allowed", []byte(good), archive.Limits{Line: len(good)}, 1, nil},
		{"one byte longer", []byte(good), archive.Limits{Line: len(good) - 1}, 0, tidemark.ErrTooLarge},
		{"the bytes that are allowed", []byte(good + good), archive.Limits{Bytes: int64(2 * len(good))}, 2, nil},
		{"many bytes, not packed", []byte(strings.Repeat(good, 1000)), archive.Limits{Free: 1, Ratio: 1}, 1000, nil},
		{"many bytes", []byte(good + good), archive.Limits{Bytes: 40}, 1, tidemark.ErrTooLarge},
		{"bomb", zip(t, strings.Repeat(good, 200_000)), archive.Limits{Free: 1 << 20, Ratio: 50}, -1, tidemark.ErrTooLarge},
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
	f.Add([]byte(sample))
	f.Add(zip(f, sample))
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
