package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
)

const (
	searchDays     = 30      // newest daily files that are read line by line
	searchBytes    = 4 << 20 // of all files that are read
	searchFacts    = 200     // rows of the ledger that are ranked
	searchTerms    = 24      // of a query
	searchLines    = 2000    // that are ranked, the newest days first
	defaultResults = 10
	maxResults     = 50
	listPages      = 8 // of 1,000 keys: more than 20 years of days
)

// Found is a line of memory that answers a query.
type Found struct {
	Path    string             `json:"path"`
	Line    int                `json:"line,omitempty"` // from 1, as memory_read counts; 0 when only the ledger has it
	Text    string             `json:"text"`
	Session string             `json:"session,omitempty"` // id of the log that it came from
	Sources []tidemark.EntryID `json:"sources,omitempty"`
	Score   float64            `json:"score"`
}

// Search looks for a query in all that a scope may read: MEMORY.md and persona, the newest daily
// files line by line, and the ledger of facts of all days. The best line is first.
func (find *finder) Search(ctx context.Context, scope tidemark.Scope, query string, limit int) ([]Found, error) {
	if err := find.own(scope); err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	if limit <= 0 {
		limit = defaultResults
	}
	q := recall.Parse(query, find.stem)
	plain := len(q.Terms) == 0
	if plain {
		q.Terms = memory.Terms(query)
	}
	if len(q.Terms) == 0 {
		return nil, fmt.Errorf("search memory: no words in the query: %w", tidemark.ErrInvalid)
	}
	found, err := find.ledgerLines(ctx, scope, q.Terms[:min(len(q.Terms), searchTerms)])
	if err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	lines, err := find.fileLines(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	if found = merge(lines, found); plain {
		found = holding(q.Terms, found)
	} else {
		found = rank(q, found, find.stem)
	}
	return found[:min(len(found), limit, maxResults)], nil
}

// rank puts lines that hold a word of the query in the order in which they answer it. A line of memory stands
// for itself and is no talk, so neither what is beside it nor the rules of talk count. The same lines and query
// give the same order.
func rank(q recall.Query, lines []Found, stem *recall.Stemmer) []Found {
	holds := map[string]int{} // lines that have a word of the query
	groups := map[string]int64{}
	var docs []recall.Doc
	for i, l := range lines {
		said := map[string]bool{}
		for _, t := range stem.Terms(l.Text) {
			if t = q.Asks(t); t != "" && !said[t] {
				said[t] = true
				holds[t]++
			}
		}
		if len(said) == 0 || len(docs) >= searchLines && l.Line > 0 { // what only the ledger has stands behind, and is bounded
			continue
		}
		if _, ok := groups[l.Path]; !ok {
			groups[l.Path] = int64(len(groups))
		}
		docs = append(docs, recall.Doc{Pos: 2 * int64(i), Group: groups[l.Path], Text: l.Text}) // a gap: none is the neighbour of another
	}
	x := recall.New(docs, stem)
	var out []Found
	for _, h := range x.SearchPlain(q, recall.Stats{Docs: len(lines), Holds: func(t string) int { return holds[t] }}) {
		f := lines[x.Docs()[h.Doc].Pos/2]
		f.Score = h.Score
		out = append(out, f)
	}
	return out
}

// holding keeps the lines that hold all of some words as they stand, in their order. A query like "how to be" has
// no word that tells one line from another, so there is nothing to rank by; archives are searched so, too.
func holding(words []string, lines []Found) []Found {
	return slices.DeleteFunc(lines, func(l Found) bool {
		has := memory.Terms(l.Text)
		return slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(has, w) })
	})
}

// merge joins what the ledger knows to the lines that say it, and drops repetitions.
func merge(lines, ledger []Found) []Found {
	at := map[string]int{}
	var out []Found
	for _, f := range append(lines, ledger...) {
		key := f.Path + "\n" + memory.Fold(f.Text)
		if i, ok := at[key]; ok {
			out[i].Session = cmp.Or(out[i].Session, f.Session)
			if out[i].Sources == nil {
				out[i].Sources = f.Sources
			}
			continue
		}
		at[key] = len(out)
		out = append(out, f)
	}
	return out
}

// ledgerLines finds facts that share a term with the query. The database ranks what it has seen of
// all peers; the order that counts is made later, of what the scope may read.
func (find *finder) ledgerLines(ctx context.Context, scope tidemark.Scope, terms []string) ([]Found, error) {
	prefix := find.folder(scope)
	facts, err := host.Read(ctx, find.cfg.DB, "read facts", scanFact, `SELECT `+factColumns+` FROM agent_words w JOIN agent_facts f ON f.seq = w.rowid
		JOIN agent_extractions x ON x.agent = f.agent AND x.id = f.extraction
		WHERE agent_words MATCH ? AND f.agent = ? AND substr(f.path, 1, length(?)) = ?`+standing+` ORDER BY bm25(agent_words), f.seq DESC LIMIT ?`,
		anyOf(terms), find.cfg.Name, prefix, prefix, searchFacts)
	if err != nil {
		return nil, err
	}
	var out []Found
	for _, f := range facts {
		if find.cfg.Sharing.MayRead(scope, f.Path) == nil {
			out = append(out, Found{Path: f.Path, Text: f.Text, Session: f.Session, Sources: f.Sources})
		}
	}
	return out, nil
}

// anyOf is the query of the index of words for any of some terms.
func anyOf(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = recall.Quote(t)
	}
	return strings.Join(quoted, " OR ")
}

// folder is where the daily files of a scope are.
func (find *finder) folder(scope tidemark.Scope) string {
	if scope.Owner || find.cfg.Sharing == memory.ShareAgent {
		return "memory/"
	}
	path := find.cfg.Sharing.Today(scope, "")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// fileLines reads the files of a scope line by line, newest days first, within a bound of bytes.
func (find *finder) fileLines(ctx context.Context, scope tidemark.Scope) ([]Found, error) {
	paths, err := find.readable(ctx, scope, searchDays)
	if err != nil {
		return nil, err
	}
	over, err := find.ledger.superseded(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var out []Found
	left := searchBytes
	for _, path := range paths {
		file, _, err := find.files.current(ctx, path)
		if errors.Is(err, tidemark.ErrTooLarge) {
			continue // the ledger still finds what we wrote there
		}
		if err != nil {
			return nil, err
		}
		if left -= len(file); left < 0 {
			break
		}
		for i, l := range strings.Split(memory.Strip(string(file)), "\n") {
			if text := strings.TrimPrefix(strings.TrimSpace(l), "- "); text != "" && !over[path][memory.Fold(text)] {
				out = append(out, Found{Path: path, Line: i + 1, Text: text})
			}
		}
	}
	return out, nil
}

// readable lists the files that a scope may read: the curated ones, then the newest days, those of
// the scope's own before those of peers.
func (find *finder) readable(ctx context.Context, scope tidemark.Scope, days int) ([]string, error) {
	var paths []string
	if scope.Main() {
		paths = []string{memory.LongTerm, memory.Soul, memory.Identity, memory.Human, memory.Instructions, memory.ToolNotes}
	}
	folder := find.folder(scope)
	if folder == "" {
		return paths, nil
	}
	var own []string
	for cursor, n := "", 0; n < listPages; n++ {
		page, next, err := find.cfg.Blobs.List(ctx, find.blobKey(folder), cursor, maxPage)
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			if path := find.files.file(o).Path; find.cfg.Sharing.MayRead(scope, path) == nil && !memory.IsDigest(path) {
				own = append(own, path)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	if today := find.cfg.Sharing.Today(scope, memory.Day(find.now(), find.cfg.Zone)); !slices.Contains(own, today) {
		own = append(own, today) // it may have nothing but pending sections
	}
	slices.SortStableFunc(own, func(x, y string) int { // newest day first; a path ends with its day
		return cmp.Or(strings.Compare(y[strings.LastIndexByte(y, '/'):], x[strings.LastIndexByte(x, '/'):]), cmp.Compare(len(x), len(y)))
	})
	return append(paths, own[:min(days, len(own))]...), nil
}
