package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/memory"
)

const (
	maxTerms         = 16
	defaultHits      = 20
	maxHits          = 200
	defaultSearch    = 256 << 20
	snippetRunes     = 240
	snippetLead      = 60 // runes before the first term
	maxSearchedBytes = 1 << 20
	maxFolded        = 8 << 10 // bytes of a message that are held against what persons said
	maxSayings       = 200
)

// Hit is a message of an archive that a search found.
type Hit struct {
	Key     string           `json:"key"`
	Session string           `json:"sessionId"`
	Line    int              `json:"line"`
	ID      tidemark.EntryID `json:"id,omitempty"`
	Role    tidemark.Role    `json:"role"`
	At      time.Time        `json:"at,omitzero"`
	Snippet string           `json:"snippet"`
	Matched int              `json:"matched"` // how many of the query's terms

	echo   int    // 1 if the assistant repeats what a person said
	folded string // what it says, to see that
}

// SearchOptions bound a search. The zero value searches the newest 256 MiB of archives and returns
// the best 20 hits.
type SearchOptions struct {
	Session  string // only in this session id
	Limit    int    // hits; 0 is 20, at most 200
	MaxBytes int64  // compressed bytes read; 0 is 256 MiB
	Progress func(Progress)
}

// Found is the result of a search.
type Found struct {
	Hits     []Hit    `json:"hits"`     // the most terms first, what a person said before what repeats it, then the newest
	Searched int      `json:"searched"` // archives read
	Skipped  int      `json:"skipped"`  // archives left out because of MaxBytes
	Damaged  []string `json:"damaged,omitempty"`
}

// Search reads the archives of an agent, newest first, for messages that hold at least half of the
// terms of a query. A session that has a whole file is read there and not in its parts. Damaged
// archives are named and passed over.
func Search(ctx context.Context, blobs tidemark.Blobs, agent, query string, opt SearchOptions) (Found, error) {
	s := search{opt: opt, terms: distinct(memory.Terms(query))}
	if len(s.terms) == 0 {
		return Found{}, fmt.Errorf("search %.80q: no words in it: %w", query, tidemark.ErrInvalid)
	}
	if s.opt.Limit <= 0 {
		s.opt.Limit = defaultHits
	}
	s.opt.Limit = min(s.opt.Limit, maxHits)
	if s.opt.MaxBytes <= 0 {
		s.opt.MaxBytes = defaultSearch
	}
	infos, err := searchable(ctx, blobs, agent, opt.Session)
	if err != nil {
		return Found{}, err
	}
	p := Progress{Total: len(infos)}
	for _, i := range infos {
		if p.Bytes+i.Bytes > s.opt.MaxBytes && s.found.Searched > 0 {
			s.found.Skipped++
			continue
		}
		p.Key = i.Key
		report(opt.Progress, p)
		if err := s.one(ctx, blobs, i); err != nil {
			return Found{}, err
		}
		p.Done, p.Bytes = p.Done+1, p.Bytes+i.Bytes
	}
	report(opt.Progress, p)
	s.trim(s.opt.Limit)
	return s.found, nil
}

// searchable lists each message's archive once, newest first.
func searchable(ctx context.Context, blobs tidemark.Blobs, agent, session string) ([]Info, error) {
	var all []Info
	whole := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := List(ctx, blobs, agent, ListOptions{Session: session, Cursor: cursor, Limit: pageSize})
		if err != nil {
			return nil, err
		}
		for _, i := range page {
			if i.Whole() && i.SHA256 != "" && i.First != "" { // one of ours, so it has all parts in it
				whole[i.Session] = true
			}
		}
		all = append(all, page...)
		if cursor = next; next == "" {
			return slices.DeleteFunc(all, func(i Info) bool { return !i.Whole() && whole[i.Session] }), nil
		}
	}
}

type search struct {
	opt   SearchOptions
	terms []string
	found Found
	said  []string // sentences of persons with a term, which the assistant may repeat
}

func (s *search) one(ctx context.Context, blobs tidemark.Blobs, i Info) error {
	_, body, err := blobs.Get(ctx, i.Key)
	if errors.Is(err, tidemark.ErrNotFound) {
		s.found.Damaged = append(s.found.Damaged, i.Key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("search %s: %w", i.Key, err)
	}
	defer body.Close()
	s.found.Searched++
	if err := s.lines(ctx, body, i); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("search %s: %w", i.Key, context.Cause(ctx))
		}
		s.found.Damaged = append(s.found.Damaged, i.Key)
	}
	return nil
}

func (s *search) lines(ctx context.Context, body io.Reader, i Info) error {
	n := 0
	var bad error
	for raw, err := range rawLines(body, Limits{}) {
		if n++; err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !s.mayMatch(raw) {
			continue
		}
		l, _, err := decodeLine(raw)
		if err != nil {
			bad = err
			continue
		}
		text := lineText(l.Message)
		matched := s.count(text)
		if matched*2 < len(s.terms) || matched == 0 {
			continue
		}
		h := Hit{Key: i.Key, Session: i.Session, Line: n, ID: l.ID, Role: l.Message.Role, At: l.At, Snippet: s.snippet(text), Matched: matched}
		if h.Role == tidemark.Assistant {
			h.folded = " " + memory.Fold(text[:min(len(text), maxFolded)]) + " "
		} else {
			s.heard(l.Message.PlainText())
		}
		s.found.Hits = append(s.found.Hits, h)
		if len(s.found.Hits) >= 4*s.opt.Limit {
			s.trim(s.opt.Limit)
		}
	}
	return bad
}

// mayMatch passes over most lines without decoding them: a term is a piece of the lower-case text,
// unless the writer escaped letters.
func (s *search) mayMatch(raw []byte) bool {
	if bytes.Contains(raw, []byte(`\u`)) {
		return true
	}
	low := bytes.ToLower(raw)
	if bytes.ContainsFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if text := string(raw); memory.Compose(text) != text {
			return true // it writes characters in another way than the terms
		}
	}
	n := 0
	for _, t := range s.terms {
		// Slashes may be escaped, so a path is looked for by its parts, which are terms too.
		if strings.ContainsRune(t, '/') || bytes.Contains(low, []byte(t)) {
			n++
		}
	}
	return n*2 >= len(s.terms)
}

func (s *search) count(text string) int {
	have := map[string]bool{}
	for _, t := range memory.Terms(text) {
		have[t] = true
	}
	n := 0
	for _, t := range s.terms {
		if have[t] || memory.Lone(t) && strings.Contains(text, t) {
			n++
		}
	}
	return n
}

// heard keeps the sentences of a person that have a term.
func (s *search) heard(text string) {
	for _, f := range memory.Sayings(text[:min(len(text), maxFolded)]) {
		if len(s.said) < maxSayings && s.count(f) > 0 {
			s.said = append(s.said, f)
		}
	}
}

// trim keeps the best n hits.
func (s *search) trim(n int) {
	for i := range s.found.Hits {
		if h := &s.found.Hits[i]; h.folded != "" && slices.ContainsFunc(s.said, func(said string) bool { return strings.Contains(h.folded, said) }) {
			h.echo = 1
		}
	}
	slices.SortStableFunc(s.found.Hits, func(a, b Hit) int {
		return cmp.Or(b.Matched-a.Matched, a.echo-b.echo, b.At.Compare(a.At))
	})
	s.found.Hits = s.found.Hits[:min(n, len(s.found.Hits))]
}

// snippet is the text around the first term, on one line.
func (s *search) snippet(text string) string {
	low := strings.ToLower(text)
	at := len(low)
	for _, t := range s.terms {
		if i := strings.Index(low, t); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(low) || len(low) != len(text) {
		at = 0
	}
	runes := []rune(strings.Join(strings.Fields(text[:at]), " "))
	lead := string(runes[max(0, len(runes)-snippetLead):])
	if len(runes) > snippetLead {
		lead = "…" + lead
	}
	rest := []rune(strings.Join(strings.Fields(text[at:min(len(text), at+4*snippetRunes)]), " "))
	out := lead
	if before, _ := utf8.DecodeLastRuneInString(text[:at]); lead != "" && unicode.IsSpace(before) {
		out += " "
	}
	if len(rest) > snippetRunes {
		return strings.ToValidUTF8(out+string(rest[:snippetRunes]), "") + "…"
	}
	return strings.ToValidUTF8(out+string(rest), "")
}

// lineText is what is searched of a message: its words, its calls and their results.
func lineText(m tidemark.Message) string {
	var b strings.Builder
	addText(&b, m.Content)
	return b.String()
}

func addText(b *strings.Builder, blocks []tidemark.Block) {
	for _, c := range blocks {
		if b.Len() > maxSearchedBytes {
			return
		}
		switch c.Type {
		case tidemark.TypeText:
			b.WriteString(c.Text)
		case tidemark.TypeToolUse:
			b.WriteString(c.Name + " ")
			b.Write(c.Input)
		case tidemark.TypeToolResult:
			addText(b, c.Content)
		}
		b.WriteByte('\n')
	}
}

func distinct(terms []string) []string {
	var out []string
	for _, t := range terms {
		if !slices.Contains(out, t) && len(out) < maxTerms {
			out = append(out, t)
		}
	}
	return out
}

func report(progress func(Progress), p Progress) {
	if progress != nil {
		progress(p)
	}
}
