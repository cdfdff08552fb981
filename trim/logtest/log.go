// Package logtest writes session logs in the shape of real ones, of any length, from a seed: for tests, benchmarks
// and comparisons with other programs. It reads none. Begin with [Write].
//
// What it writes was seen in real logs or in reports about them: one line for each block of a reply, replies with several
// calls whose results stand between their lines, copies of results beside the messages, pictures, progress, compactions,
// calls without results and results without calls.
package logtest

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// Profile is what a log consists of mostly.
type Profile string

// The profiles. The zero value is Mixed.
const (
	Mixed   Profile = "mixed"
	Tools   Profile = "tools"   // large outputs of tools
	Images  Profile = "images"  // pictures, pasted and from tools
	Talking Profile = "talking" // long texts, few tools
)

// Options direct what is written. The zero value is a mixed log of DefaultBytes.
type Options struct {
	Seed        uint64
	Bytes       int64   // at least as many are written; 0 is DefaultBytes
	Hostile     bool    // broken lines, odd line ends, lone surrogates, great numbers, doubled and torn calls
	Titles      bool    // titles of the session in its midst, which some programs take for compactions
	Compactions int     // evenly spread; the first part of the log lies before them
	Profile     Profile // "" is Mixed
}

// DefaultBytes is the length of a log without a wish.
const DefaultBytes = 1 << 20

// log is a log that is being written.
type log struct {
	o       Options
	r       *rand.Rand
	w       *bufio.Writer
	n       int64
	parent  string // uuid of the line before, "" for none
	serial  int
	clock   int64
	prose   string
	code    string
	base64  string
	lastIDs []string // calls before the last compaction
}

// Write writes one log. The same options give the same bytes.
func Write(w io.Writer, o Options) error {
	if o.Bytes <= 0 {
		o.Bytes = DefaultBytes
	}
	if o.Profile == "" {
		o.Profile = Mixed
	}
	l := &log{o: o, r: rand.New(rand.NewPCG(o.Seed, 9)), w: bufio.NewWriterSize(w, 1<<16)}
	l.pools()
	l.raw(`{"type":"file-history-snapshot","messageId":"` + l.uuid() + `","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}`)
	done := 0
	for l.n < o.Bytes || done < o.Compactions {
		if o.Compactions > 0 && done < o.Compactions && l.n >= o.Bytes*int64(done+1)/int64(o.Compactions+1) {
			l.compaction()
			done++
		}
		l.turn()
		if o.Hostile && l.r.IntN(4) == 0 {
			l.hostile()
		}
	}
	if err := l.w.Flush(); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

var words = strings.Fields("the session keeps its history and a view is computed from it when budget runs low we cut old " +
	"results first then ask for a summary which names files errors decisions open questions and what the user wanted " +
	"naïve façade Größe 設計 を 見直す проверка данных שלום עולם नमस्ते 👩‍👩‍👧 é́ 🇩🇪 — “quoted” words")

// pools makes the texts that lines take pieces of, so that a log is written faster than it is read.
func (l *log) pools() {
	var prose, code strings.Builder
	for prose.Len() < 1<<18 {
		prose.WriteString(words[l.r.IntN(len(words))])
		prose.WriteString([]string{" ", " ", " ", " ", ", ", ". ", ".\n\n"}[l.r.IntN(7)])
	}
	for line := 1; code.Len() < 3<<20; line++ {
		fmt.Fprintf(&code, "%6d\t%s%s := %s(\"%s\", %d) // %s %s\n", line, strings.Repeat("    ", l.r.IntN(4)), words[l.r.IntN(30)],
			words[l.r.IntN(30)], words[l.r.IntN(len(words))], l.r.IntN(1e6), words[l.r.IntN(30)], words[l.r.IntN(30)])
	}
	bin := make([]byte, 1<<20)
	for i := range bin {
		bin[i] = byte(l.r.Uint32())
	}
	l.prose, l.code, l.base64 = prose.String(), code.String(), base64.StdEncoding.EncodeToString(bin)
}

// piece takes about n bytes out of a pool, whole characters only.
func (l *log) piece(pool string, n int) string {
	n = min(n, len(pool)-8)
	from := l.r.IntN(len(pool) - n)
	return strings.ToValidUTF8(pool[from:from+n], "")
}

// size is a length between least and most, small ones more often.
func (l *log) size(least, most int) int {
	f := l.r.Float64()
	return least + int(f*f*f*float64(most-least))
}

func (l *log) uuid() string {
	a, b := l.r.Uint64(), l.r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b)&0xfff, b>>16)
}

func (l *log) id(kind string) string {
	l.serial++
	return fmt.Sprintf("%s_01%x%08d", kind, l.r.Uint64(), l.serial)
}

func (l *log) time() string {
	l.clock += int64(l.r.IntN(4000))
	s := l.clock / 1000
	return fmt.Sprintf("2026-02-%02dT%02d:%02d:%02d.%03dZ", 11+s/86400%17, s/3600%24, s/60%60, s%60, l.clock%1000)
}

func (l *log) raw(line string) {
	_, _ = l.w.WriteString(line) // an error stays until it is flushed
	_ = l.w.WriteByte('\n')
	l.n += int64(len(line)) + 1
}

// line writes one line of the chain of parents and returns its uuid.
func (l *log) line(typ, fields string) string {
	id, parent := l.uuid(), "null"
	if l.parent != "" {
		parent = `"` + l.parent + `"`
	}
	l.raw(`{"parentUuid":` + parent + `,"isSidechain":false,"userType":"external","cwd":"/home/me/project","sessionId":"` +
		`258c7280-ae70-4798-800f-63464d01a85d","version":"2.1.39","gitBranch":"main","type":"` + typ + `",` + fields +
		`,"uuid":"` + id + `","timestamp":"` + l.time() + `"}`)
	l.parent = id
	return id
}

const hexDigits = "0123456789abcdef"

// quote writes text as a JSON string, as JavaScript does: only quotes, backslashes and control characters escaped.
func quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/16 + 2)
	b.WriteByte('"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(s[from:i])
		from = i + 1
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '\r':
			b.WriteString(`\r`)
		default:
			b.WriteString(`\u00`)
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
	return b.String()
}
