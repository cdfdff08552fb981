package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cost"
	costlogs "github.com/tidemark-ai/tidemark/cost/logs"
)

// studied are n sessions with figures of all sizes, the first of them odd.
func studied(t *testing.T, n int) (costlogs.Findings, cost.Model) {
	t.Helper()
	price, err := cost.DefaultPrices().Find("opus")
	if err != nil {
		t.Fatal(err)
	}
	m := cost.Model{Price: price, HitRate: cost.DefaultHitRate}
	r := rand.New(rand.NewPCG(1, 2))
	f := costlogs.Findings{Model: price, HitRate: m.HitRate, Date: "2026-01-01", Source: "a <contract> & more"}
	for i := range n {
		pre := tidemark.Tokens(20_000 + r.IntN(150_000))
		post := pre - pre*tidemark.Tokens(r.IntN(90))/100
		s := costlogs.Session{Path: fmt.Sprintf("p/log-%04d.jsonl", i), Profile: costlogs.Conversational}
		if i%3 == 0 {
			s.Profile = costlogs.Mixed
		}
		if i == 0 {
			pre, post = 0, 0
			s.Title, s.Path = `"><script>alert(1)</script>`+"\x1b[31m", "p/\u202e</text>.jsonl"
		}
		if i == 1 {
			post = pre + 5000 // it grows
		}
		s.Paper = m.Paper(pre, post)
		s.Live.LiveTrim = m.Live(cost.Change{Pre: pre, Post: post, Same: pre / 4})
		s.LiveBytes = int64(pre)
		s.Composition.ToolResults.Bytes, s.Composition.Other.Bytes = int64(pre)/2, int64(pre)-int64(pre)/2
		s.Compactions = []costlogs.Compaction{{Line: 7, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Before: pre, After: post, MessagesBefore: pre / 2, MessagesAfter: post / 2}}
		f.Sessions = append(f.Sessions, s)
	}
	return f, m
}

// pictures are the SVGs of a page, each of which must be XML.
func pictures(t *testing.T, page string) (titles []string) {
	t.Helper()
	for rest := page; ; {
		_, from, ok := strings.Cut(rest, "<svg")
		if !ok {
			return titles
		}
		body, after, ok := strings.Cut(from, "</svg>")
		if !ok {
			t.Fatal("an SVG does not end")
		}
		rest = after
		d := xml.NewDecoder(strings.NewReader("<svg" + body + "</svg>"))
		for title := ""; ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("SVG %d, after %q: %v", len(titles), title, err)
			}
			if text, ok := token.(xml.CharData); ok && strings.HasPrefix(string(text), "Figure ") {
				title = string(text)
				titles = append(titles, title)
			}
		}
	}
}

func TestCostPages(t *testing.T) {
	for _, n := range []int{0, 1, 2, 25, 400} {
		f, _ := studied(t, n)
		var b strings.Builder
		if err := pageStudy(&b, f); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		for _, bad := range []string{"NaN", "Inf", "<script", "%!", "\x1b", "</text>.jsonl"} {
			if strings.Contains(page, bad) {
				t.Errorf("%d sessions: the page has %q", n, bad)
			}
		}
		want := 2*3 + 2 // figures 2 to 4 twice, 5 and 1
		if n == 0 {
			want = 0
		}
		if got := pictures(t, page); len(got) != want {
			t.Errorf("%d sessions: figures %q, want %d", n, got, want)
		}
	}
}

func TestCostPageOfALog(t *testing.T) {
	f, m := studied(t, 3)
	for _, s := range f.Sessions {
		var b strings.Builder
		if err := pageLog(&b, s, costlogs.Options{Prices: cost.DefaultPrices(), Model: m}); err != nil {
			t.Fatal(err)
		}
		if page := b.String(); strings.Contains(page, "NaN") || strings.Contains(page, "<script") || strings.Count(page, "<svg") != 4 {
			t.Errorf("%s: %d pictures, or what is no figure", s.Path, strings.Count(page, "<svg"))
		}
		pictures(t, b.String())
	}
}

// Figure 4 shows a session that is like the paper's, and the curves of its two costs meet at its break-even.
func TestCostCurvesMeet(t *testing.T) {
	f, _ := studied(t, 200)
	for _, by := range reckonings(f) {
		all := make([]costs, 0, len(f.Sessions))
		for i := range f.Sessions {
			k := by.costs(&f.Sessions[i])
			if all = append(all, k); k.even == cost.Never || k.even < 2 {
				continue
			}
			n := float64(k.even)
			if k.with(n) > k.without*n*(1+1e-9) || k.with(n-1) < k.without*(n-1)*(1-1e-9) {
				t.Errorf("%s: break-even at %s, but turn %v costs %v with and %v without", by.name, k.even, n, k.with(n), k.without*n)
			}
		}
		if k := all[shown(all)]; math.Abs(k.reduction-shownAbout) > 3 {
			t.Errorf("%s: shown is one of %.1f %%", by.name, k.reduction)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for _, tc := range []struct{ v, want float64 }{{0, 4}, {-1, 4}, {1, 1}, {1.2, 2}, {4.1, 6}, {61, 80}, {0.034, 0.04}, {150_001, 200_000}} {
		if got := roundUp(tc.v); math.Abs(got-tc.want) > 1e-9*tc.want {
			t.Errorf("%v: %v, want %v", tc.v, got, tc.want)
		}
	}
}

// A half is told as one, and is not rounded to the even number beside it: medians of 8 and 9 turns would read as 8.
func TestHalves(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 8: "8", 8.5: "8.5", 9.5: "9.5", 8.4: "8", 8.6: "9", 34.87: "35", -0.5: "-0.5"} {
		if got := halves(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// The words at the break-even of Figure 4 stand on neither of the two lines.
func TestCostMeetingIsReadable(t *testing.T) {
	words := regexp.MustCompile(`<text x="([0-9.]+)" y="([0-9.]+)" text-anchor="([a-z]+)" paint-order="stroke"[^>]*>break-even: (turn [0-9]+)<`)
	price, err := cost.DefaultPrices().Find("opus")
	if err != nil {
		t.Fatal(err)
	}
	m, drawn := cost.Model{Price: price, HitRate: cost.DefaultHitRate}, 0
	for less := tidemark.Tokens(8); less < 90; less++ {
		s := costlogs.Session{Path: "a.jsonl", Report: costlogs.Report{Paper: m.Paper(100_000, 100_000-1000*less)}}
		k := paperCosts(&s, m)
		var b strings.Builder
		if err := drawCosts(&b, []costs{k}, 0, "Figure 4"); err != nil {
			t.Fatal(err)
		}
		at := words.FindStringSubmatch(b.String())
		if at == nil {
			continue // behind the last turn
		}
		drawn++
		x, y := number(t, at[1]), number(t, at[2])
		const letter, high, deep = 7.5, 11, 3
		from, to := x, x+letter*float64(len("break-even: "+at[4]))
		if at[3] == "end" {
			from, to = x-(to-x), x
		}
		f := newFigure(float64(cost.TableCap), roundUp(max(k.without*60, k.with(60))))
		for px := from; px <= to; px++ {
			n := (px - chartLeft) / chartWidth * f.mostX
			for name, v := range map[string]float64{"without": k.without * n, "with": k.with(n)} {
				if line := f.py(v); n >= 1 && n <= f.mostX && line > y-high && line < y+deep {
					t.Fatalf("%d %% less, %s: the line of costs %s a trim runs through the words", less, at[4], name)
				}
			}
		}
		if from < chartLeft || to > chartLeft+chartWidth || y < chartTop || y > figureBottom {
			t.Errorf("%d %% less: the words stand outside of the chart, at %v, %v", less, x, y)
		}
	}
	if drawn < 50 {
		t.Errorf("%d break-evens were drawn", drawn)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
