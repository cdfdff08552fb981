package trim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const plainHead = `{"format":"tidemark cuts","version":3}` + "\n"

// sealed puts a cuts file together.
func sealed(head string, stream []byte, foot string) []byte {
	raw := append([]byte(head), stream...)
	return fmt.Appendf(append(raw, foot...), cutsLast, len(foot), crc([]byte(foot)))
}

// framed is a stream of records.
func framed(t *testing.T, records string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := s2.NewWriter(&b)
	if _, err := io.WriteString(z, records); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// footOf is the line at the end of a cuts file that has no damage itself.
func footOf(t *testing.T, cuts, size, trimmed int64) string {
	t.Helper()
	raw, err := json.Marshal(cutsFoot{Cuts: cuts, Bytes: size, Trimmed: trimmed, Block: minMarkBlock, Marks: make([]byte, (trimmed+minMarkBlock-1)/minMarkBlock*markLen)})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

func openError(raw []byte) string {
	_, err := OpenCuts(bytes.NewReader(raw), int64(len(raw)))
	if err != nil && !errors.Is(err, tidemark.ErrInvalid) {
		return "not invalid: " + err.Error()
	}
	return fmt.Sprint(err)
}

// A file is a cuts file by its first line, which is short.
func TestCutsHeads(t *testing.T) {
	pad := func(n int) string {
		return strings.TrimSuffix(plainHead, "\n") + strings.Repeat(" ", n-len(plainHead)) + "\n"
	}
	for head, want := range map[string]string{
		"": "this is no cuts file", "\n": "this is no cuts file", "{}\n": "this is no cuts file", strings.TrimSuffix(plainHead, "\n"): "this is no cuts file",
		`{"format":"tidemark cut","version":3}` + "\n":    "this is no cuts file",
		`{"format":"tidemark cuts","version":"3"}` + "\n": "this is no cuts file",
		`{"format":"tidemark cuts","version":2}` + "\n":   "the file has version 2, this program knows 3",
		`{"format":"tidemark cuts","version":4}` + "\n":   "the file has version 4, this program knows 3",
		plainHead:            "the file has no end",
		pad(maxCutsHead):     "the file has no end",
		pad(maxCutsHead + 1): "this is no cuts file",
	} {
		if got := openError([]byte(head)); !strings.Contains(got, want) {
			t.Errorf("%.60q: %s", head, got)
		}
	}
	if _, cuts := cutLog(t, rand.New(rand.NewPCG(30, 31)), []byte("a\nb\n")); !regexp.MustCompile(`(?s)^\{[^\n]+\}\n.*\{"cuts":[^\n]+\}\ntidemark cuts end [0-9]{10} [0-9a-f]{8}\n$`).Match(cuts) {
		t.Errorf("not in lines: %q", cuts)
	}
	var b bytes.Buffer
	if _, err := NewCutsWriter(&b, strings.NewReader(""), 12345, 678, cutsAt); err != nil || b.String() != `{"format":"tidemark cuts","version":3,"at":"2026-02-03T04:05:06Z","threshold":678,"bytes":12345}`+"\n" {
		t.Errorf("%v, %s", err, b.String())
	}
}

// The end says how long it is, and has a sum; both have to be right.
func TestCutsFeet(t *testing.T) {
	stream, foot := framed(t, "\x00\x00"), footOf(t, 0, 0, 0)
	pad := func(n int) string {
		return strings.TrimSuffix(foot, "\n") + strings.Repeat(" ", n-len(foot)) + "\n"
	}
	whole := sealed(plainHead, stream, foot)
	ends := func(n int64, sum uint32) []byte {
		return fmt.Appendf(bytes.Clone(whole[:len(whole)-cutsLastLen]), cutsLast, n, sum)
	}
	upper := whole // its sum with letters, and those in another case
	for n := len(foot); bytes.Equal(upper, whole); n++ {
		whole = sealed(plainHead, stream, pad(n))
		upper = bytes.Clone(whole)
		copy(upper[len(upper)-9:], bytes.ToUpper(upper[len(upper)-9:]))
	}
	both := `{"format":"tidemark cuts","version":3,` + foot[1:]
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"whole":                   {whole, "<nil>"},
		"no stream":               {sealed(plainHead, nil, foot), "<nil>"},
		"as long as may be":       {sealed(plainHead, stream, pad(maxCutsFoot)), "<nil>"},
		"longer":                  {sealed(plainHead, stream, pad(maxCutsFoot+1)), "the file is damaged: its end has 1048577 bytes"},
		"shorter than nothing":    {ends(-5, 7), "the file is damaged: its end has -5 bytes"},
		"longer than the file":    {ends(int64(len(whole)-cutsLastLen+1), 7), "the file is damaged: its end has "},
		"as long as the file":     {ends(int64(len(whole)-cutsLastLen), 7), "the file is damaged: its end does not fit its sum"},
		"empty":                   {ends(0, 0), "the file is damaged: its end does not fit its sum"},
		"another sum":             {ends(int64(len(foot)), 7), "the file is damaged: its end does not fit its sum"},
		"no JSON":                 {sealed(plainHead, stream, foot[1:]), "the file is damaged: its end does not fit its sum"},
		"numbers that cannot be":  {sealed(plainHead, stream, footOf(t, -1, 0, 0)), "the file is damaged: its end does not fit its sum"},
		"written in another case": {upper, "the file has no end"},
		"one line for both":       {sealed(both, nil, "")[:len(both)], "the file has no end"},
		"its head is its end":     {sealed("", nil, both), "the file is damaged: its end begins before its cuts"},
	} {
		if got := openError(c.raw); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	// What can be read is less than the size says.
	big := sealed(plainHead+strings.Repeat("x", maxCutsHead), stream, foot)
	for name, r := range map[string]io.ReaderAt{
		"nothing": strings.NewReader(""), "less": bytes.NewReader(big[:len(big)-1]), "the last line": &brokenReads{bytes.NewReader(big), cutsLastLen, 0, io.EOF}, "the line before": &brokenReads{bytes.NewReader(big), len(foot), 0, io.EOF},
	} {
		if _, err := OpenCuts(r, int64(len(big))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The numbers of an end are those of a file that can be.
func TestSoundFeet(t *testing.T) {
	marks := func(n int) []byte { return make([]byte, n*markLen) }
	for i, c := range []struct {
		foot cutsFoot
		want bool
	}{
		{cutsFoot{Block: 1}, true}, {cutsFoot{Block: 0}, false}, {cutsFoot{Block: 1 << 40}, true}, {cutsFoot{Block: 1<<40 + 1}, false},
		{cutsFoot{Block: 1, Cuts: -1}, false}, {cutsFoot{Block: 1, Bytes: -1}, false}, {cutsFoot{Block: 4, Trimmed: -1}, false}, {cutsFoot{Block: 1, Cuts: 1, Bytes: 1}, true},
		{cutsFoot{Block: 4, Trimmed: 4, Marks: marks(1)}, true}, {cutsFoot{Block: 4, Trimmed: 5, Marks: marks(1)}, false}, {cutsFoot{Block: 4, Trimmed: 5, Marks: marks(2)}, true},
		{cutsFoot{Block: 4, Trimmed: 4, Marks: marks(2)}, false}, {cutsFoot{Block: 4, Trimmed: 8, Marks: marks(2)}, true}, {cutsFoot{Block: 4, Trimmed: 1}, false},
		{cutsFoot{Block: 4, Trimmed: 4, Marks: make([]byte, 7)}, false}, {cutsFoot{Block: 4, Marks: make([]byte, 1)}, false},
		{cutsFoot{Block: 1, Trimmed: maxCutsFoot, Marks: marks(maxCutsFoot)}, true}, {cutsFoot{Block: 1, Trimmed: maxCutsFoot + 1, Marks: marks(maxCutsFoot + 1)}, false},
	} {
		if got := c.foot.sound(); got != c.want {
			t.Errorf("%d: %t", i, got)
		}
	}
}

// What a stream of records tells, up to the first thing that cannot be.
func TestCutsRecords(t *testing.T) {
	big := func(n uint64) string { return string(binary.AppendUvarint(nil, n)) }
	handle := strings.Repeat("h", maxHandle)
	for name, c := range map[string]struct {
		records             string
		cuts, size, trimmed int64
		want                string
	}{
		"no cut":                 {"\x00\x07", 0, 7, 7, ""},
		"one":                    {"\x01\x05\x03\x04\x01habc\x00\x05", 1, 13, 14, "5-8 at 5 put 4 h abc;"},
		"two":                    {"\x01\x05\x03\x04\x01habc\x01\x02\x00\x01\x00\x00\x05", 2, 15, 17, "5-8 at 5 put 4 h abc;10-10 at 11 put 1  ;"},
		"nothing":                {"", 0, 0, 0, "behind cut 0: unexpected EOF"},
		"another record":         {"\x02\x00", 0, 0, 0, "behind cut 0 is none"},
		"another record behind":  {"\x01\x05\x03\x04\x01habc\x02\x00", 1, 13, 14, "5-8 at 5 put 4 h abc;behind cut 1 is none"},
		"torn at once":           {"\x01", 1, 9, 9, "behind cut 0: unexpected EOF"},
		"torn in its numbers":    {"\x01\x05\x03", 1, 9, 9, "behind cut 0: unexpected EOF"},
		"torn in its handle":     {"\x01\x00\x00\x00\x03h", 1, 9, 9, "behind cut 0: unexpected EOF"},
		"torn in what was cut":   {"\x01\x00\x05\x00\x00ab", 1, 9, 9, "0-5 at 0 put 0  ab in cut 1: unexpected EOF;behind cut 1: "},
		"without an end":         {"\x01\x05\x03\x04\x01habc", 1, 8, 9, "5-8 at 5 put 4 h abc;behind cut 1: unexpected EOF"},
		"more behind the end":    {"\x00\x00\x09", 0, 0, 0, "something stands behind the last cut"},
		"fewer than told":        {"\x00\x07", 1, 7, 7, "it has 0 cuts of 1"},
		"another log":            {"\x00\x07", 0, 8, 7, "it has 0 cuts of 0"},
		"another trimmed form":   {"\x00\x07", 0, 7, 8, "it has 0 cuts of 0"},
		"the longest handle":     {"\x01\x00\x00\x00\x40" + handle + "\x00\x00", 1, 0, 0, "0-0 at 0 put 0 " + handle + " ;"},
		"a longer handle":        {"\x01\x00\x00\x00\x41" + handle + "h\x00\x00", 1, 0, 0, "cut 1 lies behind the end"},
		"up to the end":          {"\x01\x00\x03\x00\x00abc\x00\x00", 1, 3, 0, "0-3 at 0 put 0  abc;"},
		"behind the end":         {"\x01\x00\x03\x00\x00abc\x00\x00", 1, 2, 9, "cut 1 lies behind the end"},
		"a note up to the end":   {"\x01\x00\x00\x05\x00\x00\x00", 1, 0, 5, "0-0 at 0 put 5  ;"},
		"a note behind the end":  {"\x01\x00\x00\x05\x00\x00\x00", 1, 9, 4, "cut 1 lies behind the end"},
		"the greatest number":    {"\x01" + big(1<<60) + "\x00\x00\x00\x00\x00", 1, 9, 9, "cut 1 lies behind the end"},
		"a number beyond it":     {"\x01" + big(1<<60+1) + "\x00\x00\x00\x00\x00", 1, 9, 9, "a number behind cut 0 is 1152921504606846977"},
		"a length beyond it":     {"\x01\x00" + big(1<<63) + "\x00\x00\x00\x00", 1, 9, 9, "a number behind cut 0 is 9223372036854775808"},
		"a number that is none":  {"\x01" + strings.Repeat("\xff", 11), 1, 9, 9, "behind cut 0: "},
		"an end beyond any file": {"\x00" + big(1<<60+1), 0, 9, 9, "a number behind cut 0 is 1152921504606846977"},
	} {
		f := openCuts(t, sealed(plainHead, framed(t, c.records), footOf(t, c.cuts, c.size, c.trimmed)))
		var got strings.Builder
		for o, err := range f.All() {
			if err != nil {
				if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "read cuts: the file is damaged: ") {
					t.Errorf("%s: %v", name, err)
				}
				got.WriteString(strings.TrimPrefix(err.Error(), "read cuts: the file is damaged: "))
				continue
			}
			body, err := io.ReadAll(o.Body)
			fmt.Fprintf(&got, "%d-%d at %d put %d %s %s", o.From, o.To, o.At, o.Put, o.Handle, body)
			if err != nil {
				fmt.Fprint(&got, strings.TrimSuffix(strings.Replace(err.Error(), "read cuts: the file is damaged:", "", 1), ": "+tidemark.ErrInvalid.Error()))
			}
			got.WriteByte(';')
		}
		if s := got.String(); !strings.HasPrefix(s, c.want) || strings.HasSuffix(c.want, ";") && s != c.want || c.want == "" && s != "" {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
	// Who has seen enough is told no more.
	n := 0
	for range openCuts(t, sealed(plainHead, framed(t, "\x01\x05\x03\x04\x01habc\x02\x00"), footOf(t, 1, 13, 14))).All() {
		if n++; n == 1 {
			break
		}
	}
}

// The trimmed form is summed by blocks, in whatever pieces it is written, as far as it was taken.
func TestMarks(t *testing.T) {
	text := strings.Repeat("tide", 20)
	for n := range 33 {
		for piece := 1; piece < 20; piece += 3 {
			m := marker{w: io.Discard, block: 8, part: xxhash.New()}
			for at := 0; at < n; at += piece {
				if k, err := m.Write([]byte(text[at:min(at+piece, n)])); err != nil || k != min(piece, n-at) {
					t.Fatalf("%d, %v", k, err)
				}
			}
			m.close()
			var want []byte
			for at := 0; at < n; at += 8 {
				sum := xxhash.Sum64String(text[at:min(at+8, n)])
				for i := range markLen {
					want = append(want, byte(sum>>(8*i)))
				}
			}
			if m.n != int64(n) || !bytes.Equal(m.marks, want) {
				t.Fatalf("%d bytes in pieces of %d: %d bytes, marks %x, want %x", n, piece, m.n, m.marks, want)
			}
		}
	}
	m := marker{w: &broken{5, io.ErrShortWrite}, block: 8, part: xxhash.New()}
	if n, err := m.Write([]byte(text)); n != 5 || !errors.Is(err, io.ErrShortWrite) || m.n != 5 {
		t.Errorf("%d of %d, %v", n, m.n, err)
	}
}

// Blocks are as small as there may be many of.
func TestMarkBlocks(t *testing.T) {
	const most = minMarkBlock * maxMarks
	for size, want := range map[int64]int64{0: minMarkBlock, 1: minMarkBlock, most: minMarkBlock, most + 1: 2 * minMarkBlock, 2 * most: 2 * minMarkBlock, 2*most + 1: 4 * minMarkBlock} {
		w, err := NewCutsWriter(io.Discard, strings.NewReader(""), size, 500, cutsAt)
		if err != nil || w.out.block != want {
			t.Errorf("%d: %d, %v", size, w.out.block, err)
		}
	}
}

// A block may be larger than what is read at once, and the lines of those before it count.
func TestCheckOfLargeBlocks(t *testing.T) {
	out := bytes.Repeat([]byte(strings.Repeat("a", 99)+"\n"), 12_000)
	const block = 600 << 10
	f := &CutsFile{foot: cutsFoot{Block: block, Trimmed: int64(len(out))}}
	for at := 0; at < len(out); at += block {
		m := marker{w: io.Discard, block: block, part: xxhash.New()}
		_, _ = m.Write(out[at:min(at+block, len(out))])
		m.close()
		f.foot.Marks = append(f.foot.Marks, m.marks...)
	}
	size := int64(len(out))
	for at, want := range map[int]string{-1: "<nil>", 5: "between line 1 and line 6145, or it is the log of another trim (bytes 0 to 614400)", 614_398: "between line 1 and line 6145, or", 614_400: "between line 6145 and line 12001 (bytes 614400 to 1200000)", 1_199_998: "between line 6145 and line 12001 (bytes"} {
		changed := bytes.Clone(out)
		if at >= 0 {
			changed[at] ^= 1
		}
		if got := fmt.Sprint(f.Check(t.Context(), bytes.NewReader(changed), size)); !strings.Contains(got, want) {
			t.Errorf("changed at %d: %s", at, got)
		}
	}
	if err := f.Check(t.Context(), bytes.NewReader(out[:block]), block); !errors.Is(err, tidemark.ErrConflict) || !strings.Contains(err.Error(), "it has 614400 bytes, and had 1200000 when it was trimmed") {
		t.Errorf("cut off: %v", err)
	}
	if err := f.Check(t.Context(), bytes.NewReader(out[:size-1]), size); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("less than it should be: %v", err)
	}
}
