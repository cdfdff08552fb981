package compaction

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The expressions that the scanners stand for.
var (
	urlRE      = regexp.MustCompile(`https?://[^\s"'<>)\]}]+`)
	pathRE     = regexp.MustCompile(`(?:[\w.@~-]*/)+[\w.@-]+\.\w{1,8}\b|(?:/[\w.@-]+){2,}|\b[\w-]+\.(?:go|ts|tsx|js|py|rs|md|json|toml|yaml|yml|sql|sh|ex|exs|html|css|txt|csv)\b`)
	idRE       = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{7,40}\b|\b[A-Z]{2,10}-\d+\b|(?:^|\s)#\d+\b|\bv?\d+\.\d+\.\d+[\w.-]*`)
	numberRE   = regexp.MustCompile(`\b\d{1,2}:\d{2}\b|(?:[$€£]\s?)?\b\d[\d,.]*\d(?:\s?(?:%|ms|s|MB|GB|KB|kg|km|EUR|USD|tokens))?`)
	errorRE    = regexp.MustCompile(`(?i)\b(?:error|panic|fatal|exception|failed|cannot|undefined|denied|refused|timed? ?out)\b`)
	foldedLate = strings.NewReplacer("\u017f", "s", "\u212a", "k") // (?i) takes them for ASCII, the scanners do not
)

// asExpressions holds every scanner against its expression on one text.
func asExpressions(t *testing.T, s string) {
	t.Helper()
	urls, bare := cutURLs(s, maxIndexed)
	if want := urlRE.FindAllString(s, maxIndexed); !slices.Equal(urls, want) {
		t.Fatalf("URLs of %q: %q, want %q", s, urls, want)
	}
	if want := urlRE.ReplaceAllString(s, " "); bare != want {
		t.Fatalf("%q without URLs: %q, want %q", s, bare, want)
	}
	for _, c := range []struct {
		name string
		got  []string
		re   *regexp.Regexp
	}{
		{"paths", scan(s, maxIndexed, pathMatch()), pathRE},
		{"ids", scan(s, maxIndexed, idMatch), idRE},
		{"numbers", scan(s, maxIndexed, numberMatch), numberRE},
	} {
		if want := c.re.FindAllString(s, maxIndexed); !slices.Equal(c.got, want) {
			t.Fatalf("%s of %q: %q, want %q", c.name, s, c.got, want)
		}
	}
	for line := range strings.Lines(foldedLate.Replace(s)) {
		line = strings.TrimSpace(line)
		if got, want := tellsError(line), errorRE.MatchString(line); got != want {
			t.Fatalf("%q tells an error: %v", line, got)
		}
	}
}

// scanned are texts that each touch one arm of an expression, from both sides.
var scanned = []string{
	"", "see http://a.b/c?d=e), https://x", "http://", "https//x httphttp://y", "HTTP://x http:///",
	"./a/b.go", "~/x/y.tar.gz", "a/~b.go", "/usr/local/bin", "/usr", "a//b.c", "x/y.toolongext", "x/y.toolongext.md", "x/.go", "x/a~b.go/c", "main.go-x.ts", "a.tsx a.tsxy a-b.md",
	"-y.go x-y.go", "/a/b/", "/a/b/c.d/", "..a/b..c.", "a/b.c_d-e.f", "@x/y.z", "/.a/.b", "a/b.12345678 a/b.123456789",
	"123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-4266141740000", "abcdef0", "abcdef", strings.Repeat("a", 40), strings.Repeat("a", 41), "deadbeefg",
	"ABC-12 A-1 ABCDEFGHIJK-1 AB-1x", "#12 a#1 #12x", " #1", "\n\n#1", "1.2.3 v1.2.3-rc.1 v1.2 1.2.3. vv1.2.3 1.2.3é",
	"$ 12.50 €5 £10,000. 3 kg 12 kg 12kg 10s20 9:30 12:34 12:345 1:23:45 x12 10 sec 1,,, ,12, 12..3 10\n%", "$\n12", "$ 9:30 $9:30", "112:30 1234:56 10:30 10:3 10:300 1,0:30 x10:30",
	"Error: x", "errors", "time out", "timed  out", "timed out", "TIMEOUT", "time outs", "refused.", "timed_out", "xtime out",
	"<summary>a</summary>b</summary>", "<summary></summary>", "</summary><summary>", "<summary>a<summary>b</summary>",
}

// TestFactLines: the bullet before a fact goes, and a line that says there is none is none.
func TestFactLines(t *testing.T) {
	for line, want := range map[string]string{
		"- x": "x", " \t* x": "x", "• x": "x", "12) x": "x", "1. x": "x",
		"•x": "•x", "1.x": "1.x", "--- x": "--- x", "-": "-",
	} {
		if got := bullet.ReplaceAllString(line, ""); got != want {
			t.Errorf("%q without its bullet: %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{"None.", "(none)", "nothing", "n/a", "NA!", "no facts here", "no new durable memories", "é none é"} {
		if !noFact.MatchString(line) {
			t.Errorf("%q says that there is no fact", line)
		}
	}
	for _, line := range []string{"no new", "not none", "no durable new facts", "no  facts", "none of the boats sails"} {
		if noFact.MatchString(line) {
			t.Errorf("%q is a fact", line)
		}
	}
}

// TestScan: on every text, and on texts made of their parts, scanners find what the expressions find.
func TestScan(t *testing.T) {
	for _, s := range scanned {
		asExpressions(t, s)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	atoms := strings.Split("a b g v x A B Z 0 1 9 12 _ . . / / - - ~ @ # : , % $ € £ é \xff < > ) ] } \" ' go ts tsx md csv http https :// ms s MB tokens error timed time out none no new durable facts abcdef01 dead beef 1234 \v", " ")
	atoms = append(atoms, " ", " ", "\n", "\t", "\f", "\r", "<summary>", "</summary>", "• ")
	for range 60_000 {
		var b strings.Builder
		for range rng.IntN(14) {
			b.WriteString(atoms[rng.IntN(len(atoms))])
		}
		asExpressions(t, b.String())
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range scanned {
		f.Add(s)
	}
	f.Fuzz(asExpressions)
}

// BenchmarkScanHostile: texts on which a match that fails late, at every byte, would take minutes.
func BenchmarkScanHostile(b *testing.B) {
	for _, unit := range []string{"a", "a-", "a/", "a.", "/a~", "1,", "1.", "f", "http", "- ", "a.b/", "~/", " ", "/a", ".", "#", "9", "A-", "1,,", "/", "$ "} {
		b.Run(unit, func(b *testing.B) {
			s := "x/" + strings.Repeat(unit, 200_000/len(unit))
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				new(Index).Add(s, true, false)
			}
		})
	}
}
