package main

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/recall"
)

// shownBytes is how much of a find is printed.
const shownBytes = 300

// Marks of words that were found, on a terminal.
const (
	boldOn  = "\x1b[1m"
	boldOff = "\x1b[22m"
)

// found is a word of a line that a query has, too, by its place.
type found struct{ from, to int }

// shownAround makes a find fit on a line: what stands about the words of the query, which are bold on a terminal.
func shownAround(text, query string, bold bool) string {
	line := cli.OneLine(text, len(text))
	places := wordsOf(line, query)
	from, to := 0, len(line)
	if len(line) > shownBytes {
		from, to = stretch(line, places)
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	at := from
	for _, p := range places {
		if !bold || p.from < from || p.to > to {
			continue
		}
		b.WriteString(line[at:p.from] + boldOn + line[p.from:p.to] + boldOff)
		at = p.to
	}
	b.WriteString(line[at:to])
	if to < len(line) {
		b.WriteString("…")
	}
	return b.String()
}

// wordsOf returns where a line has words of a query, in any form by which recall finds them.
func wordsOf(line, query string) []found {
	stem := &recall.Stemmer{}
	terms := stem.Terms(query)
	var out []found
	for i := 0; i < len(line); {
		end := i + strings.IndexFunc(line[i:], unicode.IsSpace)
		if end < i {
			end = len(line)
		}
		if slices.ContainsFunc(stem.Terms(line[i:end]), func(t string) bool { return slices.Contains(terms, t) }) {
			word := strings.TrimFunc(line[i:end], func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) })
			if word == "" {
				word = line[i:end]
			}
			from := i + strings.Index(line[i:end], word)
			out = append(out, found{from, from + len(word)})
		}
		i = end + 1
	}
	return out
}

// stretch returns the part of a line that has the most of the words, with as much before as behind them.
func stretch(line string, places []found) (from, to int) {
	const before = shownBytes / 4
	most, first, last := 0, 0, 0
	for i, p := range places {
		n := 0
		for n < len(places)-i && places[i+n].to-p.from <= shownBytes-before {
			n++
		}
		if n > most {
			most, first, last = n, p.from, places[i+n-1].to
		}
	}
	if most == 0 {
		return 0, len(cli.Cut(line, shownBytes))
	}
	room := max(0, shownBytes-(last-first)) / 2
	from = max(0, min(first-room, len(line)-shownBytes))
	to = min(len(line), from+shownBytes)
	for from > 0 && line[from-1] != ' ' && from < first { // whole words, and whole characters
		from++
	}
	for to < len(line) && line[to] != ' ' && to > last {
		to--
	}
	return from, max(to, min(last, len(line)))
}
