package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// packed is a gzip file of tar members that archive/tar writes, which knows everything that an archive must refuse.
func packed(t *testing.T, heads ...tar.Header) []byte {
	t.Helper()
	manifest := sessionManifest()
	manifest.Format, manifest.Version = ArchiveFormat, ArchiveVersion
	raw, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	heads = append([]tar.Header{{Name: "manifest.json", Format: tar.FormatUSTAR}}, heads...)
	for i := range heads {
		h, data := &heads[i], []byte("{}\n")
		if i == 0 {
			data = raw
		}
		if h.Typeflag != 0 && h.Typeflag != tar.TypeReg {
			data = nil
		}
		h.Size, h.Mode = int64(len(data)), 0o644
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func regular(name string) tar.Header { return tar.Header{Name: name, Format: tar.FormatUSTAR} }

func TestArchiveRefuses(t *testing.T) {
	good := sessionArchive(t)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 0x10
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"nothing", nil, "ends early"},
		{"no gzip", []byte("hello, this is no archive of anything"), "no gzip"},
		{"cut off", good[:len(good)-40], "ends early"},
		{"cut in the middle", good[:len(good)/2], "ends early"},
		{"a bit turned", flipped, ""},
		{"garbage behind", append(bytes.Clone(good), "garbage"...), ""},
		{"much garbage behind", append(bytes.Clone(good), strings.Repeat("garbage", 10)...), "behind its end"},
		{"a second archive behind", append(bytes.Clone(good), good...), "behind its end"},
		{"no end", packed(t, regular("log/000001.jsonl")), "without end.json"},
		{"a path up", packed(t, regular("../../etc/passwd")), "member"},
		{"a path up, below side", packed(t, regular("side/../x")), "dot"},
		{"an absolute path", packed(t, regular("/etc/passwd")), "member"},
		{"a backslash", packed(t, regular(`side/..\x`)), "dot"},
		{"a drive", packed(t, regular(`side/c:x`)), "letters"},
		{"another file", packed(t, regular("readme.txt")), "want log/000001.jsonl"},
		{"a hidden file", packed(t, regular("side/.bashrc")), "dot"},
		{"too deep", packed(t, regular("side/a/b/c/d/e/f/g")), "deep"},
		{"a blob by no hash", packed(t, regular("blobs/ABCDEF")), "SHA-256"},
		{"a blob of another hash", packed(t, regular("blobs/"+string(hashOf("x")))), "hash"},
		{"the same twice", packed(t, regular("log/000001.jsonl"), regular("log/000001.jsonl")), "twice"},
		{"a part missing", packed(t, regular("log/000002.jsonl")), "want part 1"},
		{"of the other kind", packed(t, regular("session.jsonl")), "kind session"},
		{"a second manifest", packed(t, regular("manifest.json")), "member"},
		{"a link", packed(t, tar.Header{Name: "side/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd", Format: tar.FormatUSTAR}), "regular files"},
		{"a hard link", packed(t, tar.Header{Name: "side/x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd", Format: tar.FormatUSTAR}), "regular files"},
		{"a folder", packed(t, tar.Header{Name: "log/", Typeflag: tar.TypeDir, Format: tar.FormatUSTAR}), "regular files"},
		{"a device", packed(t, tar.Header{Name: "log/000001.jsonl", Typeflag: tar.TypeChar, Format: tar.FormatUSTAR}), "regular files"},
		{"an extended header", packed(t, tar.Header{Name: "side/ü", Format: tar.FormatPAX}), "ustar"},
	} {
		_, err := readAll(bytes.NewReader(c.data), Limits{})
		if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v; want an invalid archive, %s", c.name, err, c.says)
		}
	}
}

func TestArchiveLimits(t *testing.T) {
	good := sessionArchive(t)
	for _, c := range []struct {
		name   string
		limits Limits
		says   string
	}{
		{"members", Limits{Members: 2}, "over 2 members"},
		{"a member", Limits{Member: 5}, "over 5"},
		{"total", Limits{Total: 600}, "all members"},
		{"one member", Limits{Members: 1}, "over 1 members"},
		{"a member of one byte", Limits{Member: 1}, "over 1:"},
		{"one byte of all", Limits{Total: 1}, "over 1 bytes in all members"},
	} {
		_, err := readAll(bytes.NewReader(good), c.limits)
		if !errors.Is(err, tidemark.ErrTooLarge) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r, err := NewReader(bytes.NewReader(good), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	for _, err = range r.Lines(5) {
		if err != nil {
			break
		}
	}
	if !errors.Is(err, tidemark.ErrTooLarge) {
		t.Errorf("a line over its bound: %v", err)
	}
}

// TestArchiveBomb gives a file whose gigabyte of blanks is a megabyte: it is refused long before its end.
func TestArchiveBomb(t *testing.T) {
	m := Manifest{Kind: OfClaude, Node: testNode("cc-1")}
	var small bytes.Buffer
	w, err := NewWriter(&small, m)
	if err != nil {
		t.Fatal(err)
	}
	const said = 1 << 30
	head, err := tarHeader(logName, said)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.out.Write(head); err != nil {
		t.Fatal(err)
	}
	blanks := make([]byte, 1<<16)
	for range 32 << 20 / len(blanks) { // past the writer's own care
		if _, err := w.out.z.Write(blanks); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.out.close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(small.Bytes()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, readOnly{r})
	if !errors.Is(err, tidemark.ErrTooLarge) || n > 16<<20 {
		t.Errorf("%d bytes came out of %d: %v", n, small.Len(), err)
	}
}

// blanks gives n equal bytes.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestArchiveOfAlike writes what compresses like a bomb: what the writer makes, the reader takes.
func TestArchiveOfAlike(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("two times 64 MB through compression are minutes there")
	}
	const size = 64 << 20
	var out bytes.Buffer
	w, err := NewWriter(&out, Manifest{Kind: OfClaude, Node: testNode("cc-1")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Log(size, blanks{}), w.Side("subagents/agent-1.jsonl", 3, strings.NewReader("{}\n")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if most := size/90 + 2<<20; out.Len() > most {
		t.Errorf("%d bytes packed, want at most %d", out.Len(), most)
	}
	r, err := NewReader(&out, Limits{Ratio: ratioWrite + ratioWrite/10})
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for {
		if _, err = r.Next(); err != nil {
			break
		}
		some, err := io.Copy(io.Discard, readOnly{r})
		if err != nil {
			t.Fatal(err)
		}
		n += some
	}
	if !errors.Is(err, io.EOF) || n != size+3 {
		t.Errorf("%d bytes back: %v", n, err)
	}
}

// TestArchiveMemory carries 48 MB in lines and reads them back: all that is ever asked of the memory, for both, is a
// fraction of that.
func TestArchiveMemory(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("two times 48 MB through compression are minutes there")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "a.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var before, after runtime.MemStats
	line := make([]byte, 64<<10)
	rng := rand.NewChaCha8([32]byte{1})
	runtime.ReadMemStats(&before)
	w, err := NewWriter(file, sessionManifest())
	if err != nil {
		t.Fatal(err)
	}
	const lines = 48 << 20 / (64 << 10)
	for range lines {
		for i := 0; i+8 <= len(line); i += 8 {
			copy(line[i:], letters[rng.Uint64()%(1<<8)])
		}
		if err := w.Line("log", line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(file, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		if _, err = r.Next(); err != nil {
			break
		}
		for _, err := range r.Lines(1 << 20) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	runtime.ReadMemStats(&after)
	const most = 24 << 20
	if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, io.EOF) || n != lines || used > most {
		t.Errorf("%d lines back, %d bytes asked of the memory, want at most %d: %v", n, used, most, err)
	}
}

// letters are 256 words of eight bytes.
var letters = func() (words [256]string) {
	for i := range words {
		words[i] = fmt.Sprintf("%08x", i*2654435761)[:8]
	}
	return words
}()

func TestArchiveWriterRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(*Writer) error
	}{
		{"a line feed in a line", func(w *Writer) error { return w.Line("log", []byte("a\nb")) }},
		{"a line feed at the begin of a line", func(w *Writer) error { return w.Line("log", []byte("\na")) }},
		{"a stream by a bad name", func(w *Writer) error { return w.Line("../log", nil) }},
		{"a stream where files go", func(w *Writer) error { return w.Line("side", nil) }},
		{"a side file up", func(w *Writer) error { return w.Side("../x", 0, strings.NewReader("")) }},
		{"fewer bytes than said", func(w *Writer) error { return w.Side("x", 4, strings.NewReader("abc")) }},
		{"a blob of another hash", func(w *Writer) error { return w.Blob(hashOf("a"), 1, strings.NewReader("b")) }},
		{"a source that fails", func(w *Writer) error { return w.Log(4, iotest.ErrReader(io.ErrClosedPipe)) }},
		{"too large", func(w *Writer) error { return w.Log(DefaultMember+1, blanks{}) }},
	} {
		var out bytes.Buffer
		w, err := NewWriter(&out, sessionManifest())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.act(w); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if err := w.Close(); err == nil {
			t.Errorf("%s: the archive was closed as if it were whole", c.name)
		}
	}
}

func TestArchiveSourceError(t *testing.T) {
	good := sessionArchive(t)
	_, err := readAll(io.MultiReader(bytes.NewReader(good[:200]), iotest.ErrReader(io.ErrClosedPipe)), Limits{})
	if !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("%v: want the error of the source, which is none of the archive", err)
	}
}

func TestArchiveLineage(t *testing.T) {
	m := sessionManifest()
	m.Lineage = nil
	for i := range MaxLineage + 3 {
		m.Lineage = append(m.Lineage, testNode(fmt.Sprintf("snap-%d", i)))
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&out, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := r.Manifest()
	if len(got.Lineage) != MaxLineage || got.LineageOmitted != 3 || got.Lineage[0].ID != "snap-3" {
		t.Errorf("%d ancestors from %s, %d omitted", len(got.Lineage), got.Lineage[0].ID, got.LineageOmitted)
	}
}

// TestArchiveLines writes random lines to two streams and reads them back.
func TestArchiveLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	want := map[string][]string{}
	var out bytes.Buffer
	w, err := NewWriter(&out, sessionManifest())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		stream := []string{"log", "event"}[rng.IntN(2)]
		size := rng.IntN(100)
		if rng.IntN(30) == 0 {
			size = 70_000 + rng.IntN(1_500_000/max(1, 300-i))
		}
		line := strings.Repeat("y", size) + fmt.Sprint(i)
		want[stream] = append(want[stream], line)
		if err := w.Line(stream, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(iotest.OneByteReader(&out), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for line, err := range r.Lines(2 << 20) {
			if err != nil {
				t.Fatal(err)
			}
			got[m.Stream] = append(got[m.Stream], string(line))
		}
	}
	for stream, lines := range want {
		if strings.Join(got[stream], "\n") != strings.Join(lines, "\n") {
			t.Errorf("%s: %d lines back, want %d", stream, len(got[stream]), len(lines))
		}
	}
}

// FuzzArchive reads anything: it ends, with an error that says which kind, or with what a writer may have written.
func FuzzArchive(f *testing.F) {
	good := sessionArchive(f)
	f.Add(good)
	f.Add(good[:len(good)-9])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := readAll(bytes.NewReader(data), Limits{Members: 50, Member: 1 << 20, Total: 4 << 20})
		if err != nil && !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Fatalf("an error of no kind: %v", err)
		}
	})
}

// FuzzArchiveTar is FuzzArchive behind the compression, which hides most of what could be wrong from a fuzzer.
func FuzzArchiveTar(f *testing.F) {
	z, err := gzip.NewReader(bytes.NewReader(sessionArchive(f)))
	if err != nil {
		f.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		z, _ := gzip.NewWriterLevel(&out, gzip.NoCompression)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := readAll(&out, Limits{Members: 50, Member: 1 << 20, Total: 4 << 20})
		if err != nil && !errors.Is(err, tidemark.ErrInvalid) && !errors.Is(err, tidemark.ErrTooLarge) {
			t.Fatalf("an error of no kind: %v", err)
		}
	})
}
