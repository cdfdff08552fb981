package paging

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// Range is the part of a file that a read asked for. The zero value is the whole file.
type Range struct {
	From int64  // the first line, from 1; 0 when the range is not one of lines, or the whole file
	To   int64  // the last line, 0 for up to the end
	Odd  string // a range that is not one of lines, as a text that equals for equal ranges
}

// Whole reports whether it is the whole file.
func (r Range) Whole() bool { return r == Range{} }

// Covers reports whether all of s stands in r.
func (r Range) Covers(s Range) bool {
	switch {
	case r == s || r.Whole():
		return true
	case r.Odd != "" || s.Odd != "" || s.Whole():
		return false
	}
	return r.From <= s.From && (r.To == 0 || s.To != 0 && s.To <= r.To)
}

// String is the range as a stub names it, "" for the whole file.
func (r Range) String() string {
	switch {
	case r.Whole():
		return ""
	case r.Odd != "":
		return r.Odd
	case r.To == 0:
		return "lines " + strconv.FormatInt(r.From, 10) + "-"
	}
	return "lines " + strconv.FormatInt(r.From, 10) + "-" + strconv.FormatInt(r.To, 10)
}

// lines is a range of lines; one from the first to the end is the whole file.
func lines(from, to int64) Range {
	if from = max(from, 1); from == 1 && to == 0 {
		return Range{}
	}
	return Range{From: from, To: to}
}

// span reads the range of a read. Which fields mean what is the same with all known tools: offset and limit
// (or length), view_range, a first and a last line, head or tail, and pages.
func (f inputs) span() Range {
	if pages := f.scalar("pages"); pages != "" {
		return Range{Odd: bounded("pages " + pages)}
	}
	if tail, ok := f.number("tail"); ok && tail > 0 {
		return Range{Odd: "last " + strconv.FormatInt(tail, 10) + " lines"}
	}
	if head, ok := f.number("head"); ok && head > 0 {
		return lines(1, head)
	}
	var pair []int64
	if raw := f.get("view_range"); len(raw) > 0 && json.Unmarshal(raw, &pair) == nil && len(pair) == 2 {
		return lines(pair[0], max(pair[1], 0)) // -1 is up to the end
	}
	if whole := f.scalar("should_read_entire_file"); whole == "true" {
		return Range{}
	}
	var from, to int64
	ranged := false
	for _, name := range []string{"start_line", "line_start", "start_line_one_indexed", "from_line"} {
		if n, ok := f.number(name); ok {
			from, ranged = n, true
		}
	}
	for _, name := range []string{"end_line", "line_end", "end_line_one_indexed_inclusive", "to_line"} {
		if n, ok := f.number(name); ok {
			to, ranged = max(n, 0), true
		}
	}
	if ranged {
		return lines(from, to)
	}
	return f.offset()
}

// offset reads a range that is given by its first line and its length.
func (f inputs) offset() Range {
	from, _ := f.number("offset")
	if from < 0 {
		return Range{Odd: bounded("offset " + f.scalar("offset") + " limit " + f.scalar("limit"))}
	}
	for _, name := range []string{"limit", "length"} {
		if n, ok := f.number(name); ok && n > 0 && n < 1<<40 && from < 1<<40 {
			return lines(from, max(from, 1)+n-1)
		}
	}
	return lines(from, 0)
}

// scalar returns a number, a word or a string as text, "" for none and null.
func (f inputs) scalar(name string) string {
	raw := f.get(name)
	if len(raw) == 0 || raw[0] == 'n' {
		return ""
	}
	if raw[0] == '"' {
		return strings.TrimSpace(f.text(name))
	}
	return string(raw)
}

// number returns a whole number, also one that is written as a string, as models do.
func (f inputs) number(name string) (int64, bool) {
	n, err := strconv.ParseFloat(f.scalar(name), 64)
	if err != nil || n != float64(int64(n)) {
		return 0, false
	}
	return int64(n), true
}

// bounded is a name that is short enough to be kept.
func bounded(name string) string {
	if len(name) <= maxName {
		return strings.Clone(name)
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:maxName-40], "") + "…" + hex.EncodeToString(sum[:8])
}
