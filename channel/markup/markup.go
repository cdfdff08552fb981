// Package markup turns the Markdown that models write into the markup of messaging platforms, in
// messages that these take. It does not know all of Markdown: footnotes, reference links and HTML stay
// as they are written. Begin with [read].
//
// A text is read once into plain text with styled runs. A message holds a stretch of that text, and its
// markup is written for the stretch alone, so a message always opens and closes what it styles, code
// fences included, wherever the text is cut. No word is lost, order stays, code is as the model wrote
// it, and the same text gives the same messages.
package markup

import "strings"

// Limit is what both platforms take in one message, counted in UTF-16 units: Telegram counts so, and
// for WhatsApp, which counts characters, it is never too much.
//
// https://core.telegram.org/bots/api#sendmessage
// https://developers.facebook.com/docs/whatsapp/cloud-api/messages/text-messages
const Limit = 4096

// WhatsAppParts converts a text to messages in WhatsApp's own markup, each of [Limit] at most; none for
// a text without a visible character.
func WhatsAppParts(markdown string) []string {
	return parts(read(markdown, whatsApp), Limit, writeWhatsApp, sizeMarked)
}

// TelegramParts converts a text to messages in the HTML that Telegram reads with parse_mode HTML
// (https://core.telegram.org/bots/api#html-style). [Limit] holds for their text without
// tags, as Telegram counts it.
func TelegramParts(markdown string) []string {
	return parts(read(markdown, telegram), Limit, writeTelegram, sizeTagged)
}

// Split cuts a plain text into pieces of limit UTF-16 units at most: between paragraphs, else lines,
// else words, else characters. White space at a cut is dropped, no piece is empty.
func Split(text string, limit int) []string {
	d := doc{text: clean(text)}
	return parts(d, limit, func(d doc, from, to int) string { return d.text[from:to] }, sizeMarked)
}

// Plain takes the tags of [TelegramParts] out again, for a message that Telegram would not parse.
func Plain(html string) string {
	var b strings.Builder
	for html != "" {
		i := strings.IndexByte(html, '<')
		if i < 0 {
			b.WriteString(html)
			break
		}
		b.WriteString(html[:i])
		end := strings.IndexByte(html[i:], '>')
		if end < 0 {
			b.WriteString(html[i:])
			break
		}
		html = html[i+end+1:]
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(b.String())
}

// clean makes a text valid UTF-8 with plain line ends.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
