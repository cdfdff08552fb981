package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)

// entry makes a message entry of JSON.
func entry(n int, payload string) tidemark.Entry {
	return tidemark.Entry{ID: tidemark.EntryID(fmt.Sprintf("01E%04d", n)), Seq: int64(n), Kind: tidemark.KindMessage,
		At: noon.Add(time.Duration(n) * time.Second), Payload: json.RawMessage(payload)}
}

// talk is a conversation of n messages with calls, results, odd numbers and odd letters.
func talk(from, n int) []tidemark.Entry {
	var out []tidemark.Entry
	for i := from; i < from+n; i++ {
		switch i % 4 {
		case 0:
			e := entry(i, fmt.Sprintf(`{"role":"user","content":"question %d about <b> & 東京 🗼 \\ "}`, i))
			e.Origin = tidemark.Origin{From: tidemark.FromPerson, Channel: "cli"}
			out = append(out, e)
		case 1:
			e := entry(i, fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"tool_use","id":"t%d","name":"Bash","input":{"b":1.0,"a":1e3,"command":"ls -la src/main.go"}}]}`, i))
			e.Call = &tidemark.Call{Model: "m1", Stop: "tool_use", RequestID: "r1", Reported: true, Usage: tidemark.Usage{Input: 10, CacheRead: 5, Output: 7}}
			out = append(out, e)
		case 2:
			out = append(out, entry(i, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"main.go","is_error":false,"cache_control":{"type":"ephemeral"}}]}`, i-1)))
		default:
			e := entry(i, fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"answer %d"},{"type":"future_block","x":[1,2.50]}]}`, i))
			e.Call = &tidemark.Call{Stop: "end_turn", Usage: tidemark.Usage{Output: 3}} // estimated, of a model without a name
			out = append(out, e)
		}
	}
	return out
}

func pack(t testing.TB, entries ...tidemark.Entry) archive.Pack {
	t.Helper()
	var e archive.Encoder
	for _, x := range entries {
		if err := e.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	p, err := e.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func part(n int) archive.Info {
	at := noon.Add(time.Duration(n) * time.Minute)
	return archive.Info{Key: archive.PartKey("main", "01S", at), SessionKey: "agent:main:main", Part: int64(n), At: at}
}

func put(t testing.TB, b tidemark.Blobs, i archive.Info, p archive.Pack) archive.Info {
	t.Helper()
	out, err := archive.Put(context.Background(), b, i, p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t testing.TB, b tidemark.Blobs, key string) []archive.Line {
	t.Helper()
	var out []archive.Line
	for l, err := range archive.Read(context.Background(), b, key) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// same compares what was written with what is read.
func same(t testing.TB, entries []tidemark.Entry, lines []archive.Line) {
	t.Helper()
	if len(lines) != len(entries) {
		t.Fatalf("%d lines, want %d", len(lines), len(entries))
	}
	for i, l := range lines {
		got, want := l.Entry(), entries[i]
		if string(got.Payload) != string(want.Payload) {
			t.Fatalf("message %d is\n%s, want\n%s", i, got.Payload, want.Payload)
		}
		if got.ID != want.ID || !got.At.Equal(want.At) || got.Origin != want.Origin || !reflect.DeepEqual(got.Call, want.Call) || l.N != i+1 || l.Lines != 1 {
			t.Fatalf("line %d is %+v, want %+v", i, l, want)
		}
	}
}

func TestLine(t *testing.T) {
	line, err := archive.AppendLine(nil, talk(1, 1)[0])
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"tool_use","id":"t1","name":"Bash","input":{"b":1.0,"a":1e3,"command":"ls -la src/main.go"}}],` +
		`"timestamp":1795262401123,"id":"01E0001","model":"m1","stopReason":"tool_use","requestId":"r1","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":7}}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, line, want)
	}
	m := tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse("t", "x", json.RawMessage("{\n \"a\": 1.0}"))}}
	if line, err = archive.AppendLine(nil, tidemark.Entry{Payload: m.AppendJSON(nil)}); err != nil || bytes.Count(line, []byte("\n")) != 1 {
		t.Errorf("pretty input broke the line: %v %q", err, line)
	}
	future := entry(1, "{\"role\":\"user\",\"content\":[{\"type\":\"future_block\",\r\n\"x\":1.0}]}")
	if line, err = archive.AppendLine([]byte("before\n"), future); err != nil || !strings.HasPrefix(string(line), "before\n{") || !strings.Contains(string(line), `"x":1.0}]`) || bytes.Count(line, []byte("\n")) != 2 || bytes.Contains(line, []byte("\r")) {
		t.Errorf("a pretty block broke the line: %v %q", err, line)
	}
	if _, err := archive.AppendLine(nil, entry(1, `{"role":7,"content":"x"}`)); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("no message: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	b := tidemarktest.NewBlobs()
	entries := talk(0, 20_000)                                                                                  // several gzip members
	entries[5].Payload = json.RawMessage(`{"role":"user","content":"` + strings.Repeat("long ", 50_000) + `"}`) // over the reader's buffer
	entries[5].Call = nil
	p := pack(t, append(entries, tidemark.Entry{Kind: tidemark.KindEvent, Payload: json.RawMessage(`{}`)})...)
	first := part(1)
	first.Part = 12
	info := put(t, b, first, p)
	if info.Messages != 20_000 || info.First != "01E0000" || info.Last != entries[len(entries)-1].ID || info.Bytes != int64(len(p.Data)) || info.SHA256 != tidemark.HashOf(p.Data) || info.Session != "01S" {
		t.Errorf("%+v", info)
	}
	same(t, entries, read(t, b, info.Key))
	o, body, err := b.Get(t.Context(), info.Key)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"sessionKey": "agent:main:main", "sessionId": "01S", "agentId": "main", "messageCount": "20000", "archivedAt": "2026-11-21T12:01:00.123Z",
		"partNumber": "12", "sha256": string(info.SHA256), "firstId": "01E0000", "lastId": "01E19999", "rawBytes": fmt.Sprint(p.RawBytes)}
	if !reflect.DeepEqual(o.Metadata, want) || info.Key != "agents/main/sessions/01S-part1795262460123.jsonl.gz" {
		t.Errorf("%s has metadata %v", info.Key, o.Metadata)
	}
	z, err := gzip.NewReader(body) // what zcat sees
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || bytes.Count(text, []byte("\n")) != 20_000 || int64(len(text)) != p.RawBytes {
		t.Errorf("zcat gives %d bytes, %v", len(text), err)
	}
}

func TestPutTwice(t *testing.T) {
	b := tidemarktest.NewBlobs()
	entries := talk(0, 8)
	first := put(t, b, part(1), pack(t, entries...))
	if again := put(t, b, part(1), pack(t, entries...)); again != first {
		t.Errorf("a second time %+v, first %+v", again, first)
	}
	if _, err := archive.Put(t.Context(), b, part(1), pack(t, talk(1, 8)...)); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "other content") {
		t.Errorf("other content: %v", err)
	}

	// The same lines by another compressor are the same archive.
	var other bytes.Buffer
	z, err := gzip.NewWriterLevel(&other, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, err := archive.AppendLine(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	i := part(2)
	if _, err := b.Put(t.Context(), i.Key, bytes.NewReader(other.Bytes()), int64(other.Len()), tidemark.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	got := put(t, b, i, pack(t, entries...))
	if got.SHA256 != tidemark.HashOf(other.Bytes()) || got.Bytes != int64(other.Len()) {
		t.Errorf("described as %+v, not as what is stored", got)
	}
}

func TestPutRefuses(t *testing.T) {
	b := tidemarktest.NewBlobs()
	rows := []struct {
		name string
		i    archive.Info
		p    archive.Pack
	}{
		{"no messages", part(1), archive.Pack{}},
		{"another key", archive.Info{Key: "agents/main/MEMORY.md"}, pack(t, talk(0, 1)...)},
		{"key that leaves", archive.Info{Key: "agents/../sessions/x.jsonl.gz"}, pack(t, talk(0, 1)...)},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if _, err := archive.Put(t.Context(), b, r.i, r.p); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
		})
	}
}

func TestEncoderBound(t *testing.T) {
	e := archive.Encoder{MaxBytes: 1000}
	var err error
	for i := 0; i < 100_000 && err == nil; i++ {
		err = e.Add(talk(i, 1)[0])
	}
	if !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
}

// TestPutFaults fails the write, before and after it was done, and wants the repetition to succeed.
func TestPutFaults(t *testing.T) {
	down := errors.New("bucket is down")
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			b := tidemarktest.NewBlobs()
			parts := []archive.Info{put(t, b, part(1), pack(t, talk(0, 8)...))}
			tail := pack(t, talk(8, 4)...)
			whole := archive.Info{Key: archive.WholeKey("main", "01S"), SessionKey: "agent:main:main", At: noon}
			fails := 1
			hook := func(op, _ string) error {
				if op == "put" && fails > 0 {
					fails--
					return down
				}
				return nil
			}
			if after {
				b.FailAfter = hook
			} else {
				b.Fail = hook
			}
			if _, err := archive.PutWhole(t.Context(), b, whole, parts, tail); !errors.Is(err, down) {
				t.Fatalf("%v, want the bucket's error", err)
			}
			info, err := archive.PutWhole(t.Context(), b, whole, parts, tail)
			if err != nil {
				t.Fatal(err)
			}
			same(t, talk(0, 12), read(t, b, info.Key))
			if v, err := archive.Verify(t.Context(), b, info); err != nil || !v.OK {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestPutWhole(t *testing.T) {
	b := tidemarktest.NewBlobs()
	one, two := put(t, b, part(1), pack(t, talk(0, 8)...)), put(t, b, part(2), pack(t, talk(8, 8)...))
	rows := []struct {
		name  string
		parts []archive.Info
		tail  archive.Pack
		n     int
	}{
		{"parts and tail", []archive.Info{one, two}, pack(t, talk(16, 4)...), 20},
		{"parts only", []archive.Info{one, two}, archive.Pack{}, 16},
		{"tail only", nil, pack(t, talk(0, 4)...), 4},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			i := archive.Info{Key: archive.WholeKey("main", "w-"+strings.ReplaceAll(r.name, " ", "-")), At: noon, Usage: tidemark.Usage{Input: 5, CacheRead: 80, CacheCreation: 10, Output: 17}, Part: 5}
			info, err := archive.PutWhole(t.Context(), b, i, r.parts, r.tail)
			if err != nil {
				t.Fatal(err)
			}
			same(t, talk(0, r.n), read(t, b, info.Key))
			raw := r.tail.RawBytes
			for _, p := range r.parts {
				raw += p.RawBytes
			}
			if info.RawBytes != raw || info.Part != 0 || info.Messages != r.n || info.First != "01E0000" || info.Last != talk(r.n-1, 1)[0].ID || !info.Whole() {
				t.Errorf("%+v", info)
			}
			if v, err := archive.Verify(t.Context(), b, info); err != nil || !v.OK {
				t.Errorf("%+v, %v", v, err)
			}
			o, _, err := b.Get(t.Context(), info.Key)
			if err != nil || o.Metadata["inputTokens"] != "95" || o.Metadata["outputTokens"] != "17" || o.Metadata["totalTokens"] != "112" || o.Metadata["partNumber"] != "" {
				t.Errorf("metadata %v, %v", o.Metadata, err)
			}
		})
	}
	damaged := two
	damaged.SHA256 = tidemark.HashOf(nil)
	missing := two
	missing.Key = part(9).Key
	short := two
	short.Bytes--
	for name, bad := range map[string]archive.Info{"hash": damaged, "missing": missing, "length": short} {
		t.Run("bad part: "+name, func(t *testing.T) {
			i := archive.Info{Key: archive.WholeKey("main", "bad-"+name), At: noon}
			if _, err := archive.PutWhole(t.Context(), b, i, []archive.Info{one, bad}, archive.Pack{}); err == nil || !strings.Contains(err.Error(), bad.Key) {
				t.Errorf("%v, want an error that names the part", err)
			}
			if _, _, err := b.Get(t.Context(), i.Key); !errors.Is(err, tidemark.ErrNotFound) {
				t.Errorf("it was stored: %v", err)
			}
			opened := b.Open()
			if _, err := archive.PutWhole(t.Context(), hiding{b}, i, []archive.Info{one, bad}, archive.Pack{}); err == nil || !strings.Contains(err.Error(), bad.Key) || b.Open() != opened {
				t.Errorf("%v, want an error that names the part, whatever the store says; %d bodies are open", err, b.Open()-opened)
			}
		})
	}
}
