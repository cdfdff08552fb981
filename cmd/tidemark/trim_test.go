package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/trim"
)

// A piece is shown as what it is: text as text, anything else as it stood.
func TestShownPiece(t *testing.T) {
	for name, c := range map[string]struct {
		raw, want string
	}{
		"string":         {`"a\n\"b\" \u00e9"`, "a\n\"b\" é"},
		"blocks":         {`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "a\nb"},
		"block":          {`{"type":"text","text":"a"}`, "a"},
		"image":          {`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`},
		"text and image": {`[{"type":"text","text":"a"},{"type":"image"}]`, `[{"type":"text","text":"a"},{"type":"image"}]`},
		"bad base64":     {`{"type":"image","source":{"type":"base64","data":"?"}}`, `{"type":"image","source":{"type":"base64","data":"?"}}`},
		"a line":         {`{"type":"queue-operation"}` + "\n", `{"type":"queue-operation"}` + "\n"},
		"a member":       {`,"usage":{"input_tokens":1}`, `,"usage":{"input_tokens":1}`},
		"nothing":        {"", ""},
	} {
		if got := string(shownPiece([]byte(c.raw))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// cutsOf makes a cuts file that cuts each text out of a log, in order, with these handles.
func cutsOf(t *testing.T, cuts ...[2]string) *trim.CutsFile {
	t.Helper()
	var log string
	for _, c := range cuts {
		log += c[0] + "\n"
	}
	var raw, out bytes.Buffer
	w, err := trim.NewCutsWriter(&raw, strings.NewReader(log), int64(len(log)), 500, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	to, at := w.Out(&out), int64(0)
	for _, c := range cuts {
		n := int64(len(c[0]))
		err = errors.Join(err, w.Cut(trim.Cut{From: at, To: at + n, Handle: c[1]}))
		_, e := io.WriteString(to, "\n")
		err = errors.Join(err, e)
		at += n + 1
	}
	if err := errors.Join(err, w.Close(err)); err != nil {
		t.Fatal(err)
	}
	f, err := trim.OpenCuts(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A beginning names a piece when one piece has it; equal pieces are one; what no note stands for comes last, and before
// it the pictures in results.
func TestFindCut(t *testing.T) {
	const (
		hello   = "2cf24dba5fb0" // of the bytes of hello
		picture = `[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"b3RoZXI="}}]`
		other = "d9298a10d1b0" // of the bytes of other
	)
	plain := [][2]string{{"one", "aaaa11"}, {"two", "aaaa22"}, {"one", "aaaa11"}, {"hello", ""}, {"other", "2cf2ff"}}
	for prefix, c := range map[string]struct {
		handle string
		at     int64
		with   bool // the picture before them
		want   error
	}{
		"aaaa1": {"aaaa11", 0, false, nil}, "aaaa22": {"aaaa22", 4, false, nil}, "2cf2": {"2cf2ff", 18, false, nil}, "2cf24": {hello, 12, false, nil},
		"aaaa": {"", 0, false, tidemark.ErrConflict}, "bbbb": {"", 0, false, tidemark.ErrNotFound},
		"d929": {other, 0, true, nil}, "2cf24d": {hello, 0, true, nil}, "1357": {"135713", 0, true, nil},
	} {
		cuts := plain
		if c.with {
			cuts = append([][2]string{{picture, "135713"}, {picture, "135714"}}, plain...)
		}
		if prefix == "1357" {
			cuts = cuts[:1]
		}
		f := cutsOf(t, cuts...)
		got, err := findCut(context.Background(), f, prefix)
		if got.handle != c.handle || got.at != c.at || !errors.Is(err, c.want) || (got.picture != nil) != (c.with && prefix != "1357") {
			t.Errorf("%s: %+v, %v", prefix, got, err)
		}
	}
	f := cutsOf(t, plain...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := findCut(ctx, f, "aaaa1"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestShellWord(t *testing.T) {
	for name, want := range map[string]string{
		"small.jsonl": "small.jsonl", "a b": "'a b'", "it's": `'it'\''s'`, "-x": "'-x'", "$(id)": "'$(id)'", "ä": "'ä'",
	} {
		if got := shellWord(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A person who waits sees how far it is, and not at every read.
func TestTrimWatched(t *testing.T) {
	var said bytes.Buffer
	m := &cli.Main{Progress: true, Err: &cli.Output{W: &said}}
	w := &watched{ReaderAt: strings.NewReader("0123456789"), m: m, size: 10, began: time.Now().Add(-time.Minute)}
	p := make([]byte, 5)
	for _, at := range []int64{5, 0} {
		if n, err := w.ReadAt(p, at); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := said.String(); got != "\r\x1b[K50% of 10 B" {
		t.Errorf("%q", got)
	}
}
