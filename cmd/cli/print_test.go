package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func TestGauge(t *testing.T) {
	for _, r := range []struct {
		used, window tidemark.Tokens
		want         string
	}{
		{0, 200_000, "context 0/200k ▏0%"},
		{3_100, 200_000, "context 3.1k/200k ▏2%"},
		{100_000, 200_000, "context 100k/200k █████50%"},
		{999, 1_000, "context 999/1k █████████▉100%"},
		{400_000, 200_000, "context 400k/200k ██████████200%"},
		{1, 0, "context 1/0 ██████████100%"},
		{1_250_000, 2_000_000, "context 1.2M/2M ██████▎62%"},
	} {
		if got := Gauge(r.used, r.window); got != r.want {
			t.Errorf("gauge(%d, %d) = %q, want %q", r.used, r.window, got, r.want)
		}
	}
}

// TestTowards: a share says of what it is.
func TestTowards(t *testing.T) {
	for _, r := range []struct {
		limit tidemark.Tokens
		want  string
	}{
		{16_000, "context 8k/16k █████50% of the way to compaction"},
		{0, "context 8k/32k ██▌25% of the window"},
	} {
		if got := Towards(8_000, r.limit, 32_000); got != r.want {
			t.Errorf("%q, want %q", got, r.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, r := range []struct {
		name, in, want string
		most           int
	}{
		{"breaks", " a\n\tb ", "a b", 10},
		{"escape codes", "\x1b[31mred\x07", "[31mred", 10},
		{"cut at a character", "ääääää", "ää…", 5},
		{"empty", "", "", 5},
	} {
		if got := OneLine(r.in, r.most); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
	if got := Safe("a\x1b[2Jb\nc\r"); got != "a[2Jb\nc" {
		t.Errorf("safe: %q", got)
	}
}

func TestReadEvents(t *testing.T) {
	for _, r := range []struct {
		name, in, want string
		err            error
	}{
		{"two", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", "a=1;b=2;", nil},
		{"data of two lines", "data: 1\ndata: 2\n\n", "=1\n2;", nil},
		{"ping", ": ping\n\nevent: a\ndata: 1\n\n", "a=1;", nil},
		{"carriage returns", "event: a\r\ndata:1\r\n\r\n", "a=1;", nil},
		{"cut off between lines", "event: b\ndata: 1\n", "", io.ErrUnexpectedEOF},
		{"cut off within an event", "event: a\ndata: 1\n\nevent: b\nda", "a=1;", io.ErrUnexpectedEOF},
	} {
		t.Run(r.name, func(t *testing.T) {
			var got strings.Builder
			err := ReadEvents(strings.NewReader(r.in), func(name string, data []byte) error {
				fmt.Fprintf(&got, "%s=%s;", name, data)
				return nil
			})
			if got.String() != r.want || !errors.Is(err, r.err) {
				t.Errorf("got %q, %v; want %q, %v", got.String(), err, r.want, r.err)
			}
		})
	}
}

// FuzzReadEvents: what the reader makes of a stream does not depend on what is within an event's
// lines, and it never fails on a stream of whole events.
func FuzzReadEvents(f *testing.F) {
	f.Add("text", "hello\nworld")
	f.Add("", ": x")
	f.Fuzz(func(t *testing.T, name, data string) {
		if strings.ContainsAny(name+data, "\r\x00") || strings.Contains(name, "\n") {
			t.Skip("the writer splits these itself")
		}
		stream := "event: " + name + "\n"
		for _, l := range strings.Split(data, "\n") {
			stream += "data: " + l + "\n"
		}
		var gotName, gotData string
		err := ReadEvents(strings.NewReader(": ping\n\n"+stream+"\n"), func(n string, d []byte) error {
			gotName, gotData = n, string(d)
			return nil
		})
		if err != nil || gotName != name || gotData != data {
			t.Errorf("%q=%q came as %q=%q (%v)", name, data, gotName, gotData, err)
		}
	})
}
