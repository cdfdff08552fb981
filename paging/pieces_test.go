package paging

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestBase64Size: a text in base64 stands for as many bytes as were written, broken into lines or not, with its end or without.
func TestBase64Size(t *testing.T) {
	for n := range 60 {
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n)))
		for _, eol := range []string{"\n", "\r\n"} {
			var lines strings.Builder
			for i, c := range whole {
				if i > 0 && i%16 == 0 {
					lines.WriteString(eol)
				}
				lines.WriteRune(c)
			}
			for _, text := range []string{whole, strings.TrimRight(whole, "="), lines.String(), lines.String() + eol} {
				if got := base64Size([]byte(text)); got != n {
					t.Errorf("%q: %d, want %d", text, got, n)
				}
			}
		}
	}
}

// TestMiddleCut: a name is cut in its middle to its bound, between characters, and no bracket of it opens or closes ours.
func TestMiddleCut(t *testing.T) {
	for _, c := range []string{"a", "é", "東", "🗼", "[", "]"} {
		for lead := range 5 {
			for n := 1; n < 2*shownName; n++ {
				s := strings.Repeat("x", lead) + strings.Repeat(c, n)
				got := middleCut(s)
				if len(s) <= shownName {
					if got != s {
						t.Fatalf("%q: %q", s, got)
					}
					continue
				}
				head, tail, ok := strings.Cut(got, "…")
				bare := strings.NewReplacer("[", "(", "]", ")").Replace(s)
				if !ok || !utf8.ValidString(got) || len(got) > shownName || len(got) < shownName-6 || !strings.HasPrefix(bare, head) || !strings.HasSuffix(bare, tail) || len(head) > shownHead || len(head) < shownHead-3 {
					t.Fatalf("%q: %q", s, got)
				}
			}
		}
	}
}

// TestCallByRow: the first field that names a file does, and a verb makes a change a look.
func TestCallByRow(t *testing.T) {
	rows, err := ReadTools([]byte(`{"put":{"kind":"changes","path":["a","b"],"verb":"do","views":["show","list"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]struct {
		path string
		kind Kind
	}{
		`{"a":"/x/../y","b":"/z"}`: {"/y", Changes}, `{"b":"/z"}`: {"/z", Changes}, `{"a":"","b":"/z","do":"list"}`: {"/z", Reads}, `{"a":"/y","do":"show"}`: {"/y", Reads}, `{"a":"/y","do":"shown"}`: {"/y", Changes},
	} {
		if c := Tools(rows).Call("put", []byte(input)); c.Path != want.path || c.Kind != want.kind {
			t.Errorf("%s: %+v", input, c)
		}
	}
	for _, bad := range []string{`{"put":{"kind":"changes","path":["a"`, `{"put":{"kind":"changes",}}`, `{"put":{"kind":"flies"}}`, `{"put":{}}`, `{"put":[]}`, `{} {}`, `{"put":{"kind":"looks"},"put":{"kind":"looks"}}`} {
		if _, err := ReadTools([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestProfilesStay: the sessions that the figures of the docs rest on are made up the same each time, and on each machine.
func TestProfilesStay(t *testing.T) {
	want := map[string]uint32{"steady": 0x773c9dcf, "edit": 0x16b61db4, "workingset": 0xc767bf3d, "scan": 0x65ce26c6, "rescan": 0x9a568429, "partial": 0x5556cfe2, "errors": 0x759d09f8, "parallel": 0x238c9d39, "chat": 0x74b64599}
	large := map[string]uint32{"steady": 0xb004a7d3, "edit": 0x5735a5fc, "workingset": 0xda8ecfab, "scan": 0x1a9308dd, "rescan": 0xf80e77c2, "partial": 0x959d9c0f, "errors": 0xc2534332, "parallel": 0x027386ff, "chat": 0x041aa279}
	for _, name := range Profiles() {
		if got := crc32.ChecksumIEEE(Profile(name, 120, 700)); got != want[name] {
			t.Errorf("%s has the sum %#x, want %#x", name, got, want[name])
		}
		if got := crc32.ChecksumIEEE(Profile(name, 24, 20_000)); got != large[name] {
			t.Errorf("%s of large results has the sum %#x, want %#x", name, got, large[name])
		}
	}
}

// TestCodeBytes: of which words codes are, by each byte: of five digits or five capitals, and of a letter among digits.
func TestCodeBytes(t *testing.T) {
	for c := range 256 {
		b := byte(c)
		is := func(from, to byte) bool { return b >= from && b <= to }
		digit, letter := is('0', '9'), is('a', 'z') || is('A', 'Z')
		for text, want := range map[string]bool{
			string(bytes.Repeat([]byte{b}, 5)):    digit || is('A', 'Z'),
			string([]byte{b, '1', '2', '3'}):      letter,
			string([]byte{b, 'X', 'Y', 'Z', 'X'}): digit || is('A', 'Z') || b == '-' || b == '_',
		} {
			var got []uint32
			codes([]byte(text), func(h uint32) bool { got = append(got, h); return true })
			if slices.Contains(got, hashed([]byte(text))) != want {
				t.Errorf("%q: %d codes, want all of it %v", text, len(got), want)
			}
		}
	}
}

// TestFileNames: what may be the name of a file, at the bounds of its length.
func TestFileNames(t *testing.T) {
	for n, want := range map[int]bool{2: false, 3: true, longWord - 1: true, longWord: true, longWord + 1: false, 2 * longWord: false} {
		name := strings.Repeat("a", n-2) + "/b"
		if got := fileNames(nil, []byte("see "+name+" now")); slices.Equal(got, []string{name}) != want || !want && len(got) > 0 {
			t.Errorf("a name of %d bytes: %q", n, got)
		}
	}
}

// TestComes: results come of age that are in, and are not of age yet; inputs never do.
func TestComes(t *testing.T) {
	p := stepped(t, Options{Tau: 9}, scripted(t, "begin; bash xxxxx + write /b vvvvv; say"))
	seen := map[Part]bool{}
	for _, g := range p.pages {
		if !seen[g.Part] && g.Size > 1000 {
			seen[g.Part] = true
			if got := p.comes(g); got != (g.Part == Result) {
				t.Errorf("%s of %d bytes: %v", g.Part, g.Size, got)
			}
			if g.ripe = true; p.comes(g) {
				t.Errorf("%s of age comes of age again", g.Part)
			}
		}
	}
	if !seen[Result] || !seen[Input] {
		t.Errorf("seen %v", seen)
	}
}

// TestTotals: each kind of what a request put out is counted.
func TestTotals(t *testing.T) {
	pages := func(n int) []*Page { return make([]*Page, n) }
	var sum Totals
	for range 2 {
		sum.add(&Decision{Evict: pages(5), GC: pages(4), Input: pages(3), Image: pages(2), Pin: pages(1)})
	}
	if sum.Requests != 2 || sum.Evictions != 10 || sum.GC != 8 || sum.Inputs != 6 || sum.Images != 4 || sum.Pins != 2 {
		t.Errorf("%+v", sum)
	}
}

// TestInlineBesideOddities: an image in a result counts also beside elements that are no blocks.
func TestInlineBesideOddities(t *testing.T) {
	s := Scanner{Tools: DefaultTools()}
	m, err := s.Message([]byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":["x",7,[{"type":"image"}],null,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}]}`))
	if err != nil || len(m.Blocks) != 1 || m.Blocks[0].inline != (inline{data: 4, images: 1}) {
		t.Errorf("%+v, %v", m.Blocks, err)
	}
}
