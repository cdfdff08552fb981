package snapshot

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// unzipped is the tar file of an archive.
func unzipped(t *testing.T, archive []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// zipped is the archive of a tar file.
func zipped(t *testing.T, raw []byte) io.Reader {
	t.Helper()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if _, err := z.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// headOf is where the header of a member stands.
func headOf(t *testing.T, raw []byte, name string) int {
	t.Helper()
	at := bytes.Index(raw, append([]byte(name), 0))
	if at < 0 || at%blockSize != 0 {
		t.Fatalf("%s is at %d", name, at)
	}
	return at
}

// Of an archive every byte counts: what fills up its blocks, what its end says, and what lies behind that.
func TestArchiveChanged(t *testing.T) {
	good := unzipped(t, sessionArchive(t))
	end := headOf(t, good, endName)
	_, first, err := readTarHeader(good[:blockSize])
	if err != nil || padding(first) == 0 {
		t.Fatal(first, err)
	}
	digit := func(raw []byte, field string) {
		at := end + bytes.Index(raw[end:], []byte(field)) + len(field)
		raw[at] ^= 1
	}
	for name, c := range map[string]struct {
		change func(raw []byte) []byte
		want   string
	}{
		"nothing": {func(raw []byte) []byte { return raw }, ""},
		"an old header": {func(raw []byte) []byte {
			h := raw[end : end+blockSize]
			h[tarType] = 0
			copy(h[tarSum:], fmt.Sprintf("%06o\x00 ", tarChecksum(h)))
			return raw
		}, ""},
		"a sum":             {func(raw []byte) []byte { raw[end+tarMode]++; return raw }, "checksum"},
		"its filling":       {func(raw []byte) []byte { raw[headOf(t, raw, "overlay/000001.jsonl")+blockSize+3] = 1; return raw }, "member overlay/000001.jsonl: something lies behind its end"},
		"the first filling": {func(raw []byte) []byte { raw[blockSize+first] = 1; return raw }, "member manifest.json: something lies behind its end"},
		"its last filling":  {func(raw []byte) []byte { raw[end-1] = 1; return raw }, "member log/000002.jsonl: something lies behind its end"},
		"members":           {func(raw []byte) []byte { digit(raw, `"members":`); return raw }, "it was changed or damaged: 6 members"},
		"bytes":             {func(raw []byte) []byte { digit(raw, `"bytes":`); return raw }, "it was changed or damaged"},
		"hash":              {func(raw []byte) []byte { digit(raw, `"sha256":"`); return raw }, "it was changed or damaged"},
		"content":           {func(raw []byte) []byte { raw[headOf(t, raw, "overlay/000001.jsonl")+blockSize] = '['; return raw }, "it was changed or damaged"},
		"a name": {func(raw []byte) []byte {
			h := raw[headOf(t, raw, "overlay/000001.jsonl"):]
			h[0] = 'a'
			copy(h[tarSum:], fmt.Sprintf("%06o\x00 ", tarChecksum(h[:blockSize])))
			return raw
		}, "it was changed or damaged"},
		"zeros behind":  {func(raw []byte) []byte { return append(raw, make([]byte, 64<<10-2*blockSize)...) }, ""},
		"more zeros":    {func(raw []byte) []byte { return append(raw, make([]byte, 64<<10-2*blockSize+1)...) }, "something lies behind its end"},
		"a byte behind": {func(raw []byte) []byte { return append(raw, 'x') }, "something lies behind its end"},
		"fewer zeros":   {func(raw []byte) []byte { return raw[:len(raw)-2*blockSize] }, ""},
	} {
		_, err := readAll(zipped(t, c.change(bytes.Clone(good))), Limits{})
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// What is not read of a member is passed over, be it all of it, a byte or nothing.
func TestSkippedMembers(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, sessionManifest())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "", "bc", strings.Repeat("d", blockSize), strings.Repeat("e", blockSize+1)} {
		if err := w.Blob(hashOf(text), int64(len(text)), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for left := range int64(3) {
		r, err := NewReader(bytes.NewReader(out.Bytes()), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			var m Member
			if m, err = r.Next(); err != nil {
				break
			}
			n++
			if _, err := io.CopyN(io.Discard, r, max(0, m.Size-left)); err != nil {
				t.Fatal(err)
			}
		}
		if !errors.Is(err, io.EOF) || n != 5 {
			t.Errorf("%d bytes left: %d members, %v", left, n, err)
		}
	}
}

// What a manifest says is held to what this program knows, and its lineage as its node.
func TestManifestChecks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Manifest)
		want   string
	}{
		"as it is":          {func(*Manifest) {}, ""},
		"of Claude Code":    {func(m *Manifest) { m.Kind = OfClaude }, ""},
		"format":            {func(m *Manifest) { m.Format = "x" }, "format \"x\""},
		"an older version":  {func(m *Manifest) { m.Version = 0 }, "version 0"},
		"a newer version":   {func(m *Manifest) { m.Version = 2 }, "version 2"},
		"kind":              {func(m *Manifest) { m.Kind = "x" }, "kind \"x\""},
		"node":              {func(m *Manifest) { m.Node.ID = "" }, "node: id"},
		"lineage":           {func(m *Manifest) { m.Lineage = []Node{testNode("a"), {}, testNode("b")} }, "lineage[1]: id"},
		"most of a lineage": {func(m *Manifest) { m.Lineage = slices.Repeat([]Node{testNode("a")}, MaxLineage) }, ""},
		"more than that":    {func(m *Manifest) { m.Lineage = slices.Repeat([]Node{testNode("a")}, MaxLineage+1) }, "lineage of 20001 ancestors"},
	} {
		m := sessionManifest()
		m.Format, m.Version = ArchiveFormat, ArchiveVersion
		c.change(&m)
		if err := m.check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "manifest.json: "+c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// The last member is short.
func TestLastMember(t *testing.T) {
	for size, fits := range map[int]bool{maxEnd: true, maxEnd + 1: false} {
		var out bytes.Buffer
		w, err := NewWriter(&out, sessionManifest())
		if err != nil {
			t.Fatal(err)
		}
		w.end.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
		raw, err := json.Marshal(w.end)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.member(endName, append(raw, strings.Repeat(" ", size-len(raw))...)); err != nil {
			t.Fatal(err)
		}
		if err := w.out.close(); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(&out, Limits{}); (err == nil) != fits || !fits && (!errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "end.json: 4097 bytes")) {
			t.Errorf("an end of %d bytes: %v", size, err)
		}
	}
}

// The first member is not without end, for who writes it and for who reads it.
func TestLongManifest(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("three times 16 MB through compression are long there")
	}
	letters := make([]byte, MaxManifest/2)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(letters)
	m := sessionManifest()
	m.Format, m.Version, m.More = ArchiveFormat, ArchiveVersion, json.RawMessage(`""`)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for over, fits := range map[int]bool{0: true, 1: false} {
		m.More = json.RawMessage(`"` + hex.EncodeToString(letters)[:MaxManifest-len(raw)+over] + `"`)
		var out bytes.Buffer
		w, err := NewWriter(&out, m)
		if (err == nil) != fits || !fits && (!errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "manifest of 16777217 bytes")) {
			t.Fatalf("a manifest %d bytes over: %v", over, err)
		}
		if !fits { // written by another program
			long, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if w, err = NewWriter(&out, sessionManifest()); err != nil {
				t.Fatal(err)
			}
			out.Reset()
			w.out, w.names, w.end = newPacker(&out), seen{}, end{}
			if err := w.member(manifestName, long); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := NewReader(&out, Limits{}); (err == nil) != fits || !fits && (!errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(err.Error(), "manifest.json: 16777217 bytes")) {
			t.Errorf("a manifest %d bytes over: %v", over, err)
		}
	}
}

// A stream has as many parts as it takes, numbered in order.
func TestManyParts(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, sessionManifest())
	if err != nil {
		t.Fatal(err)
	}
	const parts = 23
	for i := range parts {
		if err := errors.Join(w.Line("log", fmt.Append(nil, i)), w.Line("event", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(&out, Limits{})
	if err != nil || len(got) != 2*parts {
		t.Fatalf("%d members, %v", len(got), err)
	}
	for i := range parts {
		if log, event := got[fmt.Sprintf("log/%06d.jsonl", i+1)], got[fmt.Sprintf("event/%06d.jsonl", i+1)]; log != fmt.Sprintln(i) || event != "\n" {
			t.Errorf("part %d: %q and %q", i+1, log, event)
		}
	}
}

// Lines about as long as what is read at once are read as they are, and one byte over the bound is refused.
func TestLongLines(t *testing.T) {
	lengths := []int{64<<10 - 2, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128<<10 - 2, 128<<10 - 1, 128 << 10, 0, 1, 200_000, 5}
	var out bytes.Buffer
	w, err := NewWriter(&out, sessionManifest())
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range lengths {
		if err := w.Line("log", bytes.Repeat([]byte{byte('a' + i)}, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]string{200_000: "", 199_999: "line 10 is over 199999 bytes", 64<<10 - 1: "line 3 is over 65535 bytes", 0: "line 1 is over 0 bytes"} {
		r, err := NewReader(bytes.NewReader(out.Bytes()), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		var got []int
		said := ""
		for line, err := range r.Lines(most) {
			if err != nil {
				said = err.Error()
				continue
			}
			if strings.Trim(string(line), string(rune('a'+len(got)))) != "" {
				t.Fatalf("line %d has letters of another one", len(got))
			}
			got = append(got, len(line))
		}
		if (said == "") != (want == "") || !strings.Contains(said, want) || !slices.Equal(got, lengths[:len(got)]) || want == "" && len(got) != len(lengths) {
			t.Errorf("within %d: %v, %s", most, got, said)
		}
	}
	if w, err = NewWriter(io.Discard, sessionManifest()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Line("log", make([]byte, 3*maxPart)), w.Line("event", nil)); err != nil || cap(w.lines.data) > maxPart {
		t.Errorf("%v, %d bytes are kept for a line that is written", err, cap(w.lines.data))
	}
}

// Lines of a member that is cut off end with what is wrong, and with nothing behind it.
func TestTornLines(t *testing.T) {
	raw := unzipped(t, sessionArchive(t))
	r, err := NewReader(zipped(t, raw[:headOf(t, raw, "log/000001.jsonl")+blockSize+10]), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line, err := range r.Lines(100) {
		got = append(got, fmt.Sprintf("%s %t", line, errors.Is(err, tidemark.ErrInvalid)))
	}
	if fmt.Sprint(got) != "[{\"n\":1} false  true]" {
		t.Errorf("%q", got)
	}
}

// The writer stores what would expand a hundredfold, and compresses again when all of it expands fiftyfold.
func TestPackerTurns(t *testing.T) {
	for _, c := range []struct {
		plain     bool
		over      int64 // bytes in over the ratio to bytes out
		ratio     int64
		wantPlain bool
	}{{false, 0, ratioWrite, false}, {false, 1, ratioWrite, true}, {true, 0, ratioWrite / 2, false}, {true, 1, ratioWrite / 2, true}, {false, 1, ratioWrite / 2, false}, {true, 1, ratioWrite, true}} {
		p := newPacker(io.Discard)
		if c.plain {
			p.plain, _ = gzip.NewWriterLevel(p.to, gzip.NoCompression)
			p.z = p.plain
		}
		if err := p.z.Flush(); err != nil {
			t.Fatal(err)
		}
		before := p.to.n
		if err := p.z.Flush(); err != nil {
			t.Fatal(err)
		}
		mark := p.to.n - before // what each look adds to what is written
		p.to.n, p.window = 1000-mark, 7
		p.raw = 1000*c.ratio + c.over
		if err := p.look(); err != nil || (p.z == p.plain) != c.wantPlain || (p.z == p.best) == c.wantPlain || p.window != 0 {
			t.Errorf("%+v: %v, stored: %t", c, err, p.z == p.plain)
		}
	}
}

// The writer keeps to what a reader takes, to the byte and the member.
func TestWriterLimits(t *testing.T) {
	side := func(n int64) func(*Writer) error {
		return func(w *Writer) error { return w.Side("x", n, strings.NewReader("12345")) }
	}
	for name, c := range map[string]struct {
		set  func(*Writer)
		act  func(*Writer) error
		want string
	}{
		"the last member":  {func(w *Writer) { w.end.Members = DefaultMembers - 1 }, side(5), ""},
		"one more":         {func(w *Writer) { w.end.Members = DefaultMembers }, side(5), "over 100000 members"},
		"the last bytes":   {func(w *Writer) { w.end.Bytes = DefaultTotal - 5 }, side(5), ""},
		"one byte more":    {func(w *Writer) { w.end.Bytes = DefaultTotal - 4 }, side(5), "over 8589934592 bytes"},
		"a large one":      {func(*Writer) {}, side(DefaultMember + 1), "2147483649 bytes, over"},
		"the largest":      {func(*Writer) {}, side(DefaultMember), "5 bytes came of 2147483648"},
		"less than none":   {func(*Writer) {}, side(-1), "-1 bytes, over"},
		"none":             {func(*Writer) {}, side(0), ""},
		"of another case":  {func(w *Writer) { w.names.add("side/X") }, side(5), "is there twice"},
		"a blob twice":     {func(w *Writer) { w.names.add("blobs/" + string(hashOf("a"))) }, func(w *Writer) error { return w.Blob(hashOf("a"), 9, nil) }, ""},
		"a blob behind it": {func(w *Writer) { _ = w.Log(-1, nil); w.names.add("blobs/" + string(hashOf("a"))) }, func(w *Writer) error { return w.Blob(hashOf("a"), 9, nil) }, "-1 bytes, over"},
	} {
		w, err := NewWriter(io.Discard, Manifest{Kind: OfClaude, Node: testNode("cc-1")})
		if err != nil {
			t.Fatal(err)
		}
		c.set(w)
		if err := c.act(w); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	good := unzipped(t, sessionArchive(t))
	_, total, err := readTarHeader(good[:blockSize])
	if err != nil {
		t.Fatal(err)
	}
	parts, err := readAll(zipped(t, good), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range parts {
		total += int64(len(text))
	}
	for less, fits := range map[int64]bool{0: true, 1: false} {
		if _, err := readAll(zipped(t, good), Limits{Total: total - less}); (err == nil) != fits || !fits && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Errorf("%d bytes less: %v", less, err)
		}
	}
}

// What a header holds of names and sizes, and which it takes back.
func TestHeaderBounds(t *testing.T) {
	for size, fits := range map[int64]bool{0: true, 1<<33 - 1: true, 1 << 33: false} {
		h, err := tarHeader("a", size)
		if (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
		if !fits {
			continue
		}
		if name, got, err := readTarHeader(h); name != "a" || got != size || err != nil {
			t.Errorf("%d bytes: %s, %d, %v", size, name, got, err)
		}
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, want := range map[string]string{
		x(100): "|" + x(100), x(101): "|", "/" + x(100): "|", "a/" + x(100): "a|" + x(100), "a/" + x(99): "a|" + x(99), x(155) + "/" + x(100): x(155) + "|" + x(100), x(156) + "/" + x(100): "|",
		x(155) + "/a/" + x(98): x(155) + "|a/" + x(98), x(156) + "/a": "|", x(80) + "/" + x(19): "|" + x(80) + "/" + x(19),
	} {
		if prefix, rest := splitName(name); prefix+"|"+rest != want {
			t.Errorf("%s: %s|%s", name, prefix, rest)
		}
	}
	for size, want := range map[int64]int64{0: 0, 1: 511, 511: 1, 512: 0, 513: 511, 1024: 0} {
		if got := padding(size); got != want {
			t.Errorf("%d bytes are filled with %d", size, got)
		}
	}
	if !zeros(nil) || !zeros([]byte{0, 0}) || zeros([]byte{0, 1}) || zeros([]byte{1, 0}) || zeros([]byte{0, 1, 0}) {
		t.Error("zeros")
	}
}
