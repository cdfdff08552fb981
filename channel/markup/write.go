package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// writer writes the stretch [from, to) of a doc in the markup of a platform.
type writer func(d doc, from, to int) string

// tag is one of Telegram's.
type tag struct {
	style style
	name  string
}

// begin writes the tag with what it takes of a link's address or a fence's language.
func (t tag) begin(arg string) string {
	switch {
	case t.style == link:
		return `<a href="` + escapeHTML.Replace(arg) + `">`
	case t.style == fence && arg != "":
		return `<pre><code class="language-` + escapeHTML.Replace(arg) + `">`
	}
	return "<" + t.name + ">"
}

func (t tag) end(arg string) string {
	if t.style == fence && arg != "" {
		return "</code></pre>"
	}
	return "</" + t.name + ">"
}

// tags are those that we write, the outermost first.
var tags = [...]tag{{quote, "blockquote"}, {link, "a"}, {bold, "b"}, {italic, "i"}, {strike, "s"}, {code, "code"}, {fence, "pre"}}

var escapeHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// writeTelegram writes Telegram's HTML: tags are nested in one order, so they are always balanced.
func writeTelegram(d doc, from, to int) string {
	var b strings.Builder
	open := run{}
	turn := func(next run) { // closes what next has not, opens what it adds
		keep := 0
		for keep < len(tags) && open.style&tags[keep].style == next.style&tags[keep].style &&
			(tags[keep].style != link && tags[keep].style != fence || open.arg == next.arg) {
			keep++
		}
		for i := len(tags) - 1; i >= keep; i-- {
			if t := tags[i]; open.style&t.style != 0 {
				b.WriteString(t.end(open.arg))
			}
		}
		for i := keep; i < len(tags); i++ {
			if t := tags[i]; next.style&t.style != 0 {
				b.WriteString(t.begin(next.arg))
			}
		}
		open = next
	}
	d.each(from, to, func(r run) {
		turn(r)
		b.WriteString(escapeHTML.Replace(d.text[r.from:r.to]))
	})
	turn(run{})
	return b.String()
}

// marksOf are WhatsApp's, the outermost first. They count only where they touch a word inside and
// none outside, and within a line.
//
// https://faq.whatsapp.com/539178204879377
var marksOf = [...]struct {
	style style
	mark  string
}{{bold, "*"}, {italic, "_"}, {strike, "~"}, {code, "`"}}

// marked writes WhatsApp's markup.
type marked struct {
	strings.Builder
	open   style
	spaces string // read, but not written: marks close before them
}

// writeWhatsApp writes WhatsApp's markup.
func writeWhatsApp(d doc, from, to int) string {
	w := &marked{}
	start := true // of a line
	d.each(from, to, func(r run) {
		text := d.text[r.from:r.to]
		if r.style&fence != 0 {
			w.turn(0)
			w.WriteString("```\n" + text + "\n```")
			start = false
			return
		}
		for text != "" {
			line, _, more := strings.Cut(text, "\n")
			if start && r.style&quote != 0 {
				w.WriteString("> ")
			}
			at := r.to - len(text)
			w.line(line, d.shown(r.style, at, at+len(line), from, to))
			text = text[len(line):]
			if start = more; more {
				w.turn(0)
				w.WriteByte('\n')
				text = text[1:]
			}
		}
	})
	w.turn(0)
	return w.String()
}

// line writes a stretch of a line.
func (w *marked) line(s string, st style) {
	word := strings.TrimLeft(s, " \t")
	if word == "" {
		w.turn(w.open & st)
	}
	w.spaces += s[:len(s)-len(word)]
	if word == "" {
		return
	}
	if st == w.open {
		w.WriteString(w.spaces)
		w.spaces = ""
	} else {
		w.turn(st)
	}
	trimmed := strings.TrimRight(word, " \t")
	w.WriteString(trimmed)
	w.spaces = word[len(trimmed):]
}

// turn closes what is open and not wanted, writes the spaces between, and opens the rest.
func (w *marked) turn(next style) {
	keep := 0
	for keep < len(marksOf) && w.open&marksOf[keep].style == next&marksOf[keep].style {
		keep++
	}
	for i := len(marksOf) - 1; i >= keep; i-- {
		if w.open&marksOf[i].style != 0 {
			w.WriteString(marksOf[i].mark)
		}
	}
	w.WriteString(w.spaces)
	w.spaces = ""
	for i := keep; i < len(marksOf); i++ {
		if next&marksOf[i].style != 0 {
			w.WriteString(marksOf[i].mark)
		}
	}
	w.open = next
}

// shown is what of a style WhatsApp can show on the stretch [at, end) of a line: nothing within a
// word, where the marks would stay as letters.
func (d doc) shown(st style, at, end, from, to int) style {
	st &= inner | code
	if st == 0 {
		return 0
	}
	if at > from && letter(utf8.DecodeLastRuneInString(d.text[from:at])) && letter(utf8.DecodeRuneInString(d.text[at:end])) && d.at(at-1)&st != st {
		return 0
	}
	if end < to && letter(utf8.DecodeRuneInString(d.text[end:to])) && letter(utf8.DecodeLastRuneInString(d.text[at:end])) && d.at(end)&st != st {
		return 0
	}
	return st
}

func letter(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
