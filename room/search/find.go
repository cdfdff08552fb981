package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// How candidates are found. FTS5's own bm25 would cost 2 µs for each message that has a term, and count all
// messages of a conversation for its home word: half a second among a million. So the index gives the messages
// of each term alone, newest first and bounded, which costs a fifth; the weights of the terms that a message has
// choose the candidates, and package recall ranks those by their text.
const (
	postingMost = 600    // messages of a term that are listed
	baseMost    = 1000   // messages that the rarest terms give together, before others only weigh them
	weighMost   = 4      // terms with longer lists that are asked which of these have them
	askTerms    = 24     // terms of a query that are looked up, the ones that name something first
	candidates  = 20     // messages that are read and ranked, or as many as are wanted
	hopMost     = 8      // of a second search
	besideOf    = 5      // candidates whose neighbours are read, too
	beside      = 2      // messages at either side
	besideMost  = 16     // that are looked at for these where some may be of a skipped turn, or of another time
	timedMost   = 50_000 // messages of the times that are wanted, whose positions are looked up
	commonFrom  = 200    // messages from which on common words are left out
)

// posting is the messages that have a term, newest first.
type posting struct {
	term string
	seqs []int64
	more bool    // there are older ones
	docs float64 // about how many there are
}

// sizeOf is how many messages a conversation has, at the time that the newest had a position, and whether it has
// its database for itself.
type sizeOf struct {
	docs, last int64
	alone      bool
}

// among says which messages of the index are looked at. To hold a word's messages against all of a conversation
// takes longer than to list them, so one that has its database for itself does without, and one that is most of it
// asks of each message whose it is, until it has enough of its own.
type among struct {
	line             *host.Lineage
	found, skipped   []string // words of the home column
	alone, most, all bool
}

func (s *Room) among(l *host.Lineage, w Wanted, n sizeOf) among {
	a := among{line: l, alone: n.alone, most: !n.alone && l.Single && 2*n.docs >= n.last, all: w.All}
	a.found, a.skipped = room.Homes(l)
	return a
}

// match is the expression of FTS5 for an expression over terms.
func (a among) match(terms string) string {
	switch {
	case (a.alone || a.most) && a.all:
		return `terms : ` + terms
	case a.alone || a.most:
		return `terms : ` + terms + ` NOT ` + recall.MatchHome(a.skipped)
	case a.all:
		return recall.MatchHome(slices.Concat(a.found, a.skipped)) + ` AND terms : ` + terms
	}
	return recall.MatchHome(a.found) + ` AND terms : ` + terms
}

// within is the condition that entries under an alias are of what the session may look into.
func within(l *host.Lineage, alias string) (sql string, args []any) {
	if l.Single {
		return alias + `.log IN (SELECT id FROM logs WHERE key BETWEEN ? AND ?)`, l.Ends
	}
	return alias + `.log IN (SELECT key FROM json_each(?)) AND ` + l.Before(alias), []any{l.Logs, l.Logs}
}

// extent returns how many messages the conversation has, roughly: it counts again when the database grew by a
// quarter, since that reads an index of them all.
func (s *Room) extent(ctx context.Context, l *host.Lineage) (sizeOf, error) {
	rows, err := s.DB.Query(ctx, `SELECT (SELECT coalesce(max(seq), 0) FROM entries), NOT EXISTS (SELECT 1 FROM logs WHERE key NOT BETWEEN ? AND ?) LIMIT 1`, l.Ends...)
	if err != nil {
		return sizeOf{}, fmt.Errorf("recall: %w", err)
	}
	last, alone := rows[0].Int(0), rows[0].Int(1) > 0 && l.Single
	if old := s.counted.Load(); old != nil && last-old.last <= old.docs/4 {
		n := sizeOf{docs: old.docs, last: last, alone: alone}
		if alone { // what came since is its own
			n.docs += last - old.last
		}
		return n, nil
	}
	in, args := within(l, "e")
	rows, err = s.DB.Query(ctx, `SELECT count(*) FROM entries e WHERE e.kind = 'message' AND `+in+` LIMIT 1`, args...)
	if err != nil {
		return sizeOf{}, fmt.Errorf("recall: %w", err)
	}
	n := &sizeOf{docs: rows[0].Int(0), last: last, alone: alone}
	s.counted.Store(n)
	return *n, nil
}

// postings asks the index for the messages of each term, in one query. Terms that no message has are left out.
func (s *Room) postings(ctx context.Context, in among, terms []string, w Wanted, n sizeOf) ([]posting, error) {
	var out []posting
	lists, err := s.listed(ctx, in, terms, w, postingMost)
	if err != nil {
		return nil, err
	}
	for i, seqs := range lists {
		if len(seqs) == 0 {
			continue
		}
		p := posting{term: terms[i], seqs: seqs, more: len(seqs) >= postingMost, docs: float64(len(seqs))}
		if p.more { // as dense among the older ones
			p.docs *= float64(n.last) / float64(max(1, n.last-seqs[len(seqs)-1]))
			p.docs = min(p.docs, float64(n.docs))
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b posting) int { return cmp.Compare(a.docs, b.docs) })
	return out, nil
}

// listed returns the messages that match each of some expressions of FTS5 over terms, newest first.
func (s *Room) listed(ctx context.Context, in among, terms []string, w Wanted, most int) ([][]int64, error) {
	matches := make([]string, len(terms))
	for i, t := range terms {
		if !strings.HasPrefix(t, "(") {
			t = recall.Quote(t)
		}
		matches[i] = in.match(t)
	}
	raw, err := json.Marshal(matches)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	if w.outside && w.rows != nil && w.rows.whole {
		return s.beyond(ctx, in, terms, w, most)
	}
	from, args, early := `words WHERE words MATCH j.value`, []any{most, string(raw)}, ``
	if w.before > 0 {
		early = ` AND words.rowid < ` + strconv.FormatInt(w.before, 10)
	}
	if w.rows != nil && !w.outside {
		early += ` AND words.rowid BETWEEN ` + strconv.FormatInt(w.rows.from, 10) + ` AND ` + strconv.FormatInt(w.rows.to, 10)
	}
	if w.timed() && (w.rows == nil || !w.rows.whole) {
		since, until := w.span()
		between := `BETWEEN`
		if w.outside {
			between = `NOT BETWEEN`
		}
		from, args = `words JOIN entries e ON e.seq = words.rowid WHERE words MATCH j.value AND e.at `+between+` ? AND ?`, []any{since, until, most, string(raw)}
	}
	own := ""
	if in.most {
		own = ` AND EXISTS (SELECT 1 FROM entries own INDEXED BY entries_log WHERE own.log IN (SELECT id FROM logs WHERE key BETWEEN ? AND ?) AND own.seq = words.rowid)`
		args = slices.Insert(args, len(args)-2, in.line.Ends...)
	}
	if !in.line.Single {
		own = ` AND EXISTS (SELECT 1 FROM entries own WHERE own.seq = words.rowid AND ` + in.line.Before("own") + `)`
		args = slices.Insert(args, len(args)-2, any(in.line.Logs))
	}
	rows, err := s.DB.Query(ctx, `SELECT j.key, (SELECT group_concat(r) FROM (SELECT words.rowid AS r FROM `+from+early+own+` ORDER BY words.rowid DESC LIMIT ?)) FROM json_each(?) j LIMIT 64`, args...)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	out := make([][]int64, len(terms))
	for _, r := range rows {
		out[r.Int(0)] = list(r.Text(1))
	}
	return out, nil
}

// rows are positions in the database.
type rows struct {
	from, to int64
	whole    bool // all between were said in the times that are wanted
}

// rowsOf turns times into positions: the id of an entry begins with its time. To ask of each message of a word when it
// was said takes twenty times as long. nil is for no times, and for those of more messages than are worth it: then
// some are soon found that are old enough.
func (s *Room) rowsOf(ctx context.Context, w Wanted) (*rows, error) {
	since, until := w.span()
	if !w.timed() || since < 0 {
		return nil, nil
	}
	begin := func(ms int64) string { return tidemark.NewID(time.UnixMilli(ms))[:10] }
	found, err := s.DB.Query(ctx, `SELECT coalesce(min(seq), 1), coalesce(max(seq), 0), count(*) FROM (SELECT seq FROM entries WHERE id >= ? AND id < ? LIMIT ?) LIMIT 1`, begin(since), begin(until+1), timedMost)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	from, to, n := found[0].Int(0), found[0].Int(1), found[0].Int(2)
	if n >= timedMost {
		return nil, nil
	}
	return &rows{from, to, to-from+1 == n}, nil
}

// beyond lists what was said at other times than are wanted: behind their positions, and before them.
func (s *Room) beyond(ctx context.Context, in among, terms []string, w Wanted, most int) ([][]int64, error) {
	out := make([][]int64, len(terms))
	for _, part := range []rows{{w.rows.to + 1, 1 << 53, true}, {0, w.rows.from - 1, true}} {
		w.rows, w.outside = &part, false
		lists, err := s.listed(ctx, in, terms, w, most)
		if err != nil {
			return nil, err
		}
		for i, seqs := range lists {
			out[i] = append(out[i], seqs[:min(len(seqs), most-len(out[i]))]...)
		}
	}
	return out, nil
}

func (w Wanted) timed() bool { return !w.Since.IsZero() || !w.Until.IsZero() }

// span is the times that are wanted, in milliseconds.
func (w Wanted) span() (since, until int64) {
	until = 1 << 53
	if !w.Until.IsZero() {
		until = w.Until.UnixMilli()
	}
	if !w.Since.IsZero() {
		since = w.Since.UnixMilli()
	}
	return since, until
}

// find returns the messages that have the most of a query's terms, weighted by rarity, and of the words that stand
// together in it, best first and newest first among equals, with the terms by rarity and how rare each is.
func (s *Room) find(ctx context.Context, l *host.Lineage, terms []string, runs []recall.Run, w Wanted, n sizeOf, most int) ([]int64, []string, recall.Stats, error) {
	in := s.among(l, w, n)
	list, err := s.postings(ctx, in, askedFirst(terms), w, n)
	if err != nil {
		return nil, nil, recall.Stats{}, err
	}
	holds, byRarity := map[string]int{}, make([]string, len(list))
	for i, p := range list {
		holds[p.term], byRarity[i] = int(p.docs), p.term
	}
	stats := recall.Stats{Docs: int(max(n.docs, 1)), Holds: func(t string) int { return holds[t] }}
	weights, err := s.weigh(ctx, in, list, w, n, most)
	if err != nil {
		return nil, nil, stats, err
	}
	if err := s.weighRuns(ctx, in, list, runs, w, n, weights); err != nil {
		return nil, nil, stats, err
	}
	seqs, err := s.heaviest(ctx, list, weights, n, most)
	return seqs, byRarity, stats, err
}

// weigh sums up the weights of terms by message: of those that the rarest terms give, or, when there are only
// common ones, of the newest that have them all and the newest that have one. Terms in over 5 % of the messages
// do not count when rarer ones remain.
func (s *Room) weigh(ctx context.Context, in among, list []posting, w Wanted, n sizeOf, most int) (map[int64]float64, error) {
	common := float64(max(n.docs/20, commonFrom))
	var base, rest []posting
	total := 0
	for _, p := range list { // the rarest first
		switch {
		case p.docs > common:
		case !p.more && total+len(p.seqs) <= baseMost:
			base, total = append(base, p), total+len(p.seqs)
		default:
			rest = append(rest, p)
		}
	}
	if len(base) == 0 {
		return s.weighCommon(ctx, in, list, w, n, most)
	}
	weights := map[int64]float64{}
	var names []string
	for _, p := range base {
		names = append(names, recall.Quote(p.term))
		for _, seq := range p.seqs {
			weights[seq] += rarity(p, n)
		}
	}
	var ask []posting
	var queries []string
	for _, p := range rest {
		if !p.more {
			add(weights, p.seqs, rarity(p, n))
		} else if len(ask) < weighMost {
			ask, queries = append(ask, p), append(queries, `(`+recall.Quote(p.term)+` AND (`+strings.Join(names, " OR ")+`))`)
		}
	}
	if len(ask) == 0 {
		return weights, nil
	}
	lists, err := s.listed(ctx, in, queries, w, baseMost)
	if err != nil {
		return nil, err
	}
	for i, seqs := range lists {
		add(weights, seqs, rarity(ask[i], n))
	}
	return weights, nil
}

// weighCommon weighs messages when no term is rare: the newest that have one of the rarest terms, that have them all
// and, where these are not enough, that have two of them, so that an old one with most of them is found.
func (s *Room) weighCommon(ctx context.Context, in among, list []posting, w Wanted, n sizeOf, most int) (map[int64]float64, error) {
	list = list[:min(len(list), weighMost)]
	has := map[int64]int{} // which of the terms, a bit for each
	for i, p := range list {
		for _, seq := range p.seqs {
			has[seq] |= 1 << i
		}
	}
	sets := []int{1<<len(list) - 1}
	for len(sets) > 0 && len(list) > 1 {
		queries := make([]string, len(sets))
		for i, set := range sets {
			var names []string
			for j, p := range list {
				if set>>j&1 > 0 {
					names = append(names, recall.Quote(p.term))
				}
			}
			queries[i] = `(` + strings.Join(names, " AND ") + `)`
		}
		found, err := s.listed(ctx, in, queries, w, most)
		if err != nil {
			return nil, err
		}
		for i, seqs := range found {
			for _, seq := range seqs {
				has[seq] |= sets[i]
			}
		}
		if sets = nil; len(found) == 1 && len(found[0]) < most && len(list) > 2 {
			for i := range list {
				for j := range i {
					sets = append(sets, 1<<i|1<<j)
				}
			}
		}
	}
	weights := make(map[int64]float64, len(has))
	for seq, set := range has {
		for i, p := range list {
			if set>>i&1 > 0 {
				weights[seq] += rarity(p, n)
			}
		}
	}
	return weights, nil
}

// add adds a weight to those that are there.
func add(weights map[int64]float64, seqs []int64, by float64) {
	for _, seq := range seqs {
		if old, ok := weights[seq]; ok {
			weights[seq] = old + by
		}
	}
}

func rarity(p posting, n sizeOf) float64 { return recall.Rarity(int(p.docs), int(n.docs)) }

// askedFirst bounds the terms that are looked up: those that name one thing first.
func askedFirst(terms []string) []string {
	if len(terms) <= askTerms {
		return terms
	}
	out := slices.Clone(terms)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(recall.Names(b), recall.Names(a)) })
	return out[:askTerms]
}

// placed is a message to be read and its place among the others: neighbours follow one another by it.
type placed struct {
	seq, pos int64
	found    bool // by its words, not as a neighbour
}

// placing puts candidates and the neighbours of some of them in order.
func (s *Room) placing(ctx context.Context, l *host.Lineage, seqs, around []int64, w Wanted) ([]placed, error) {
	raw, err := json.Marshal(around)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	since, until := w.span()
	wanted, args, look := ` WHERE at BETWEEN ? AND ?`, []any{since, until}, beside
	if w.timed() {
		look = besideMost
	}
	if there, err := s.Made.Has(ctx, skipTables); err != nil {
		return nil, err
	} else if there && !w.All {
		look = besideMost
		wanted += ` AND NOT EXISTS (SELECT 1 FROM skips k, json_each(k.ids) i WHERE k.key = ? AND k.state = 'skipped' AND i.value = b.id
			AND k.first = (SELECT max(first) FROM skips WHERE key = ? AND first < b.seq AND state = 'skipped'))`
		args = append(args, string(s.Key), string(s.Key))
	}
	own := ""
	if !l.Single { // what was said there since a branch began is nobody's neighbour here
		own, args = ` AND `+l.Before("b"), slices.Insert(args, 0, any(l.Logs))
	}
	side := func(cmp, order string) string {
		return `(SELECT group_concat(seq) FROM (SELECT seq FROM (SELECT seq, id, at FROM entries b WHERE b.log = e.log AND b.kind = 'message' AND b.seq ` + cmp + ` e.seq` + own + `
			ORDER BY b.seq ` + order + ` LIMIT ` + strconv.Itoa(look) + `) b` + wanted + ` ORDER BY seq ` + order + ` LIMIT ` + strconv.Itoa(beside) + `))`
	}
	args = append(args, args...)
	rows, err := s.DB.Query(ctx, `SELECT e.seq, `+side("<", "DESC")+`, `+side(">", "ASC")+` FROM json_each(?) j JOIN entries e ON e.seq = j.value LIMIT ?`,
		append(args, string(raw), besideOf+hopBeside)...)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	next, found := map[int64]int64{}, map[int64]bool{}
	for _, seq := range seqs {
		found[seq] = true
	}
	all := maps.Clone(found)
	for _, r := range rows {
		chain := append(list(r.Text(1)), r.Int(0))
		chain = append(chain, list(r.Text(2))...)
		slices.Sort(chain)
		for i, seq := range chain {
			if i > 0 {
				next[chain[i-1]] = seq
			}
			all[seq] = true
		}
	}
	order := slices.Sorted(maps.Keys(all))
	out := make([]placed, len(order))
	for i, seq := range order {
		out[i] = placed{seq: seq, found: found[seq]}
		if i > 0 {
			out[i].pos = out[i-1].pos + 2
			if next[order[i-1]] == seq {
				out[i].pos--
			}
		}
	}
	return out, nil
}

// list reads numbers with commas between them.
func list(s string) []int64 {
	out := make([]int64, 0, strings.Count(s, ",")+1)
	for n := range strings.SplitSeq(s, ",") {
		if v, err := strconv.ParseInt(n, 10, 64); err == nil {
			out = append(out, v)
		}
	}
	return out
}
