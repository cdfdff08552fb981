package trim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func coded(file string) string { return base64.StdEncoding.EncodeToString([]byte(file)) }

func pictureOf(kind, file string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + kind + `","data":"` + coded(file) + `"}}`
}

func beginOf(file string) string {
	sum := sha256.Sum256([]byte(file))
	return fmt.Sprintf("%x", sum[:6])
}

// The note of a result names each of the first pictures in it, and a second trim knows that note again.
func TestPicturesOfResult(t *testing.T) {
	files := func(n, size int) (all []string) {
		for i := range n {
			all = append(all, strings.Repeat(string(rune('a'+i)), size))
		}
		return all
	}
	for name, c := range map[string]struct {
		kind  string
		files []string
		named int // how many of them
	}{
		"one":                        {"image/png", files(1, 400), 1},
		"two":                        {"image/png", files(2, 400), 2},
		"all":                        {"image/png", files(namedPictures, 400), namedPictures},
		"one more":                   {"image/png", files(namedPictures+1, 400), namedPictures},
		"many":                       {"image/png", files(30, 400), namedPictures},
		"types that fill the note":   {strings.Repeat("x", 40), files(namedPictures, 400), 5},
		"one, not said by its words": {"image/\\u0070ng", files(1, 400), 1},
	} {
		var blocks []string
		total := 0
		for _, f := range c.files {
			blocks = append(blocks, pictureOf(c.kind, f))
			total += len(f)
		}
		label := strings.Repeat("語", maxLabel)
		in := called("t1", "Bash", `{"command":"`+label+`"}`) + "\n" + result("t1", "["+strings.Join(blocks, ",")+"]") + "\n"
		out, _ := laws(t, []byte(in), Options{Threshold: 50, How: "how to read " + strings.Repeat("h", 90)})
		for i, f := range c.files {
			if got, want := strings.Contains(string(out), ", "+thousands(int64(len(f)))+" bytes, sha256 "+beginOf(f)), i < c.named; got != want {
				t.Errorf("%s: picture %d is named: %t, in %s", name, i, got, out)
			}
		}
		if left := len(c.files) - c.named; left > 0 {
			if want := fmt.Sprintf("; and %d more, %s bytes in all)", left, thousands(int64(total))); !strings.Contains(string(out), want) {
				t.Errorf("%s: no %q in %s", name, want, out)
			}
		}
	}
}

// Pictures are found where the trimmer finds them, told by the same hash, in whatever pieces they come.
func TestPictures(t *testing.T) {
	big := strings.Repeat("tide", 100_001)
	text := `{"type":"text","text":"` + long(40_000) + `"}`
	for name, c := range map[string]struct {
		in     string
		want   []string // files
		blocks int
	}{
		"a block":               {pictureOf("image/png", "one"), []string{"one"}, 1},
		"a document":            {`{"source":{"data":"` + coded("pdf") + `","type":"base64"},"type":"document"}`, []string{"pdf"}, 1},
		"a list":                {" [" + text + ", " + pictureOf("image/png", "one") + ",null," + pictureOf("image/gif", big) + "," + text + "]", []string{"one", big}, 5},
		"an empty file":         {pictureOf("image/png", ""), []string{""}, 1},
		"escapes in names":      {`{"t\u0079pe":"im\u0061ge","s\u006furce":{"d\u0061ta":"` + coded("one") + `"}}`, []string{"one"}, 1},
		"the last of two":       {`{"type":"image","source":{"data":"` + coded("one") + `","data":"` + coded("two") + `"}}`, []string{"two"}, 1},
		"words":                 {`{"type":"document","source":{"type":"text","data":"AAAA"}}`, nil, 1},
		"no base64":             {`{"type":"image","source":{"data":"AA==AAAA"}}`, nil, 1},
		"base64 that is short":  {`{"type":"image","source":{"data":"AAAAA"}}`, nil, 1},
		"an address":            {`{"type":"image","source":{"type":"url","url":"AAAA"}}`, nil, 1},
		"another block":         {`{"type":"text","source":{"data":"AAAA"}}`, nil, 1},
		"a source that is none": {`{"type":"image","source":{"data":"AAAA"},"source":7}`, nil, 1},
		"a string":              {`"[{}]"`, nil, 0},
		"torn":                  {"[" + text, nil, 0},
		"nothing":               {"", nil, 0},
		"null":                  {"null", nil, 0},
	} {
		for way, read := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader} {
			var got []string
			blocks, err := Pictures(read(strings.NewReader(c.in)), func(p Picture) {
				var file bytes.Buffer
				if err := p.Write(read(strings.NewReader(c.in)), &file); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if p.Handle != beginOf(file.String()) {
					t.Errorf("%s: handle %s", name, p.Handle)
				}
				got = append(got, file.String())
			})
			if err != nil || blocks != c.blocks || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %d blocks and %.60q, %v", name, way, blocks, got, err)
			}
		}
	}
	lost := errors.New("lost")
	if _, err := Pictures(io.MultiReader(strings.NewReader("["+text), iotest.ErrReader(lost)), nil); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if err := (Picture{Handle: "ff"}).Write(strings.NewReader("AAAA"), io.Discard); err == nil {
		t.Error("another picture was taken for it")
	}
	if err := (Picture{Kind: "image/png", Handle: beginOf("one")}).Write(strings.NewReader(pictureOf("image/png", "one")), &broken{err: lost}); !errors.Is(err, lost) || !strings.Contains(err.Error(), beginOf("one")) {
		t.Errorf("full: %v", err)
	}
}

// What base64 stands for is counted by its letters, also where it is none.
func TestDecodedSize(t *testing.T) {
	for n := range 10 {
		text := coded(strings.Repeat("a", n))
		for in, want := range map[string]int64{text: int64(n), "=": 0, "==": 0, "A=": 0, "AA": 1, "AAA": 2, "A===": 1} {
			p := parser{source: source{data: []byte(`"` + in + `"`)}}
			if got := p.decoded(span{0, int64(len(in) + 2)}); got != want {
				t.Errorf("%q: %d bytes, want %d", in, got, want)
			}
		}
	}
}
