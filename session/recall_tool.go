package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// recallTool is the session's own tool: the markers and stubs in the view name it.
var recallTool = tidemark.Tool{
	Name: "recall",
	Description: "Find messages of this conversation word for word, also evicted, summarised or archived ones. " +
		"The answer says how far it can be trusted. With entry it reads one message whole, with episode all of one.",
	InputSchema: []byte(`{"type":"object","properties":{"query":{"type":"string","description":"names, numbers and rare words find best"},"k":{"type":"integer"},"since":{"type":"string","description":"a day or time as it stands in a marker, such as 2026-05-31 or 2026-05-31 14:00"},"until":{"type":"string"},"budget":{"type":"integer"},"all":{"type":"boolean"},"entry":{"type":"string"},"episode":{"type":"string"},"offset":{"type":"integer","description":"bytes to skip"}}}`),
	Idempotent:  true,
}

// recallFields are the fields of an input of recall.
var recallFields = []string{"query", "k", "since", "until", "budget", "all", "entry", "episode", "offset", "scope", "peer"}

// unknownField names a field that recall does not have: a model that mistyped one would read that the query is
// empty.
func unknownField(input []byte) error {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(input, &in); err != nil {
		return err
	}
	for _, f := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(recallFields, f) {
			return fmt.Errorf("field %.40q is not known: want %s: %w", f, strings.Join(recallFields, ", "), tidemark.ErrInvalid)
		}
	}
	return nil
}

// callRecall answers a call of recall.
func (s *Session) callRecall(ctx context.Context, r *run, c call) tidemark.Block {
	call := c.Block
	var in struct {
		Query   string `json:"query"`
		K       int    `json:"k"`
		Since   string `json:"since"`
		Until   string `json:"until"`
		Budget  int    `json:"budget"`
		All     bool   `json:"all"`
		Entry   string `json:"entry"`
		Episode string `json:"episode"`
		Offset  int    `json:"offset"`
		Scope   string `json:"scope"`
		Peer    string `json:"peer"`
	}
	text, err := "", unknownField(call.Input)
	if err == nil {
		err = json.Unmarshal(call.Input, &in)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("input: %w", err)
	case in.Entry == "" && in.Episode == "" && strings.TrimSpace(in.Query) == "":
		err = fmt.Errorf("input: want query, the words to look for, or entry, the id of one to read, or episode, its name: %w", tidemark.ErrInvalid)
	case in.Budget < 0:
		err = fmt.Errorf("budget %d: want 1 or more tokens, or none: %w", in.Budget, tidemark.ErrInvalid)
	default:
		if err = s.mayRecall(ctx, r, c, in.Entry+in.Episode != ""); err != nil {
			break
		}
		if in.Entry == "" && in.Episode != "" {
			text, err = s.readEpisode(ctx, r.Log, in.Episode, in.Offset)
			break
		}
		if in.Entry != "" {
			if far, ok := Room[room.Reader](s); ok && strings.HasPrefix(in.Entry, "agent:") {
				text, err = far.Read(ctx, in.Entry, in.Offset)
				break
			}
			if len(in.Entry) > maxID {
				err = fmt.Errorf("entry %.40q…: an id has at most %d bytes: %w", in.Entry, maxID, tidemark.ErrInvalid)
				break
			}
			id, block := compaction.ReadHandle(in.Entry)
			if block < 0 {
				text, err = s.ReadEntry(ctx, id, in.Offset)
				break
			}
			var out tidemark.Block
			if out, err = s.readBlock(ctx, call.ID, id, block, in.Offset); err == nil {
				return out
			}
			break
		}
		w := Wanted{Query: in.Query, K: min(in.K, maxToolK), Budget: toolBudget, All: in.All, told: true}
		if w.before, err = s.turnFrom(ctx, r); err != nil {
			break
		}
		if in.Budget > 0 {
			w.Budget = min(max(tidemark.Tokens(in.Budget), minToolBudget), maxToolBudget)
		}
		scope := recall.ScopeSession
		if w.Since, w.Until, err = s.Between(in.Since, in.Until); err == nil {
			scope, err = recall.ParseScope(in.Scope, recall.ScopeSession)
		}
		switch {
		case err != nil:
		case scope == recall.ScopeSession:
			text, err = s.tellRecall(ctx, w)
		default:
			text, err = s.tellWide(ctx, w, scope, in.Peer)
		}
	}
	if err != nil {
		return tidemark.ToolResult(call.ID, strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()), true)
	}
	return tidemark.ToolResult(call.ID, text, false)
}

// turnFrom is the position of the first message of a turn in work, 0 when it has none. What it asks and calls is no
// answer to itself.
func (s *Session) turnFrom(ctx context.Context, r *run) (int64, error) {
	const most = 1000 // messages of a turn
	rows, err := s.DB.Query(ctx, `SELECT coalesce(min(e.seq), 0) FROM (SELECT seq, origin FROM entries WHERE log = ? AND kind = 'message' ORDER BY seq DESC LIMIT ?) e
		WHERE json_extract(e.origin, '$.input') IN (SELECT id FROM inputs WHERE run = ?) LIMIT 1`, r.Log, most, r.ID)
	if err != nil {
		return 0, fmt.Errorf("recall: the turn in work: %w", err)
	}
	return rows[0].Int(0), nil
}

// Bounds of what a model is shown in a turn.
const (
	maxToolK      = 20
	toolBudget    = tidemark.Tokens(4_000) // papers/total-recall: of a pull
	maxToolBudget = tidemark.Tokens(16_000)
	minToolBudget = tidemark.Tokens(250) // a verdict and a result or two
	headTokens    = tidemark.Tokens(150) // of what stands before the results, at most
	// The paper has 3. Agents follow two hops for several facts, and a refusal costs a turn more than a search does.
	toolRecalls = 8
	// What a turn reads in all, entries included: about 50,000 tokens, and the last answer.
	toolBytes = 200_000
	maxID     = 100           // bytes of an entry's id, so that no other text is told back
	toolPage  = room.ToolPage // bytes of an entry; what a call that is not done yet is taken to give
)

// mayRecall refuses a search when a turn had as many as it may have, and a search or an entry when it was given as much
// as it may be.
func (s *Session) mayRecall(ctx context.Context, r *run, c call, entry bool) error {
	rows, err := s.DB.Query(ctx, `SELECT coalesce(sum(json_extract(call, '$.name') = ? AND coalesce(json_extract(call, '$.input.entry'), '') || coalesce(json_extract(call, '$.input.episode'), '') = ''), 0), coalesce(sum(CASE state WHEN 'done' THEN length(result) ELSE ? END), 0)
		FROM calls WHERE run = ? AND (round < ? OR round = ? AND n < ?) AND json_extract(call, '$.name') IN (?, ?) LIMIT 1`,
		recallTool.Name, toolPage, r.ID, r.Round, r.Round, c.N, recallTool.Name, paging.FaultTool)
	if err != nil {
		return fmt.Errorf("recall: %w", err)
	}
	switch {
	case !entry && rows[0].Int(0) >= toolRecalls:
		err = fmt.Errorf("recall was called %d times in this turn", toolRecalls)
	case rows[0].Int(1) >= toolBytes:
		err = fmt.Errorf("recall gave %d bytes in this turn", rows[0].Int(1))
	default:
		return nil
	}
	return fmt.Errorf("%w, which is the most: answer from what was found, or say that it was not: %w", err, tidemark.ErrInvalid)
}

// How far a find can be trusted, as a model reads it.
const (
	weakFind      = "Weak: only part of the query was said, it was asked and not answered, or several texts fit it. Check before you rely on it, or ask in other words."
	confidentFind = "Confident: what the query asks for was said."
)

// nothingFind says that nothing was found, or that nothing could be looked for.
func nothingFind(hint string) string {
	if hint != "" {
		return "Nothing was searched: " + hint + "."
	}
	return "Nothing found that this query tells from others."
}

// tellRecall is what the model reads of a recall.
func (s *Session) tellRecall(ctx context.Context, w Wanted) (string, error) {
	found, err := s.Recall(ctx, w)
	if err != nil {
		return "", err
	}
	s.NoteRecall(ctx, ByModel, found)
	var b strings.Builder
	for _, left := range found.Filtered {
		if left.Reason == NotIndexed {
			fmt.Fprintf(&b, "%d messages are not indexed yet and were not looked at; a minute later they are. ", left.Count)
		}
	}
	switch found.Verdict {
	case recall.Nothing:
		b.WriteString(nothingFind(found.Hint))
		if len(found.Results) == 0 {
			return b.String(), nil
		}
		b.WriteString(" These share some of its words; do not take them for an answer.")
	case recall.Weak:
		b.WriteString(weakFind)
	case recall.Confident:
		b.WriteString(confidentFind)
	}
	tellSearch(&b, found.Reformulated, leftCounts(found.Filtered))
	for _, r := range found.Results {
		s.tellResult(&b, r, "")
	}
	return strings.TrimSpace(b.String()), nil
}

// toldCost is what a result takes of the budget of who reads it.
func (s *Session) toldCost(r Recollection) int {
	var b strings.Builder
	s.tellResult(&b, r, "")
	return int(tidemark.EstimateText(b.String()))
}

// tellSearch says that a search went on, and what it left out.
func tellSearch(b *strings.Builder, reformulated, left string) {
	if reformulated != "" {
		fmt.Fprintf(b, " Searched on for %.120q.", reformulated)
	}
	if left != "" {
		fmt.Fprintf(b, " Left out: %s.", left)
	}
}

// leftCounts is what a search left out, in a few words.
func leftCounts(filtered []Filtered) string {
	var out []string
	for _, f := range filtered {
		if f.Reason != NotIndexed && f.Count > 0 {
			out = append(out, fmt.Sprintf("%d %s", f.Count, f.Reason))
		}
	}
	return strings.Join(out, ", ")
}

// tellResult writes one result for a model: who said it, and each line of it behind a bar, so that nothing that
// somebody else wrote can pass for another result, or for words of the program.
func (s *Session) tellResult(b *strings.Builder, r Recollection, where string) {
	place := ""
	if r.Offset > 0 {
		place = fmt.Sprintf(" at offset %d", r.Offset)
	}
	fmt.Fprintf(b, "\n\n[%s] %s%s, entry %s%s, %.0f %%:", r.At.In(s.settings().Zone).Format("2006-01-02 15:04"), cmp.Or(r.From, string(r.Role)), where, r.ID, place, 100*r.Coverage)
	for line := range strings.Lines(strings.TrimSpace(plainLines(r.Text))) {
		b.WriteString("\n| " + strings.TrimRight(line, "\n"))
	}
}

// Between reads two times of a query: a day or a time where the agent is, as markers and results say it, or one of RFC
// 3339; empty is open. Until a day is until its end, and until a minute until the end of that.
func (s *Session) Between(since, until string) (from, to time.Time, err error) {
	return Between(since, until, s.settings().Zone)
}

// Between is [Session.Between] in a zone.
func Between(since, until string, zone *time.Location) (from, to time.Time, err error) {
	if from, _, err = moment("since", since, zone); err != nil {
		return from, to, err
	}
	to, unit, err := moment("until", until, zone)
	switch unit {
	case aDay:
		to = to.AddDate(0, 0, 1).Add(-time.Millisecond)
	case aMinute: // as a marker says when its span ended
		to = to.Add(time.Minute - time.Millisecond)
	}
	if err == nil && !from.IsZero() && !to.IsZero() && from.After(to) {
		err = fmt.Errorf("since %.40q is after until %.40q: turn them round: %w", since, until, tidemark.ErrInvalid)
	}
	return from, to, err
}

// What the text of a time names.
const (
	aSecond = iota
	aMinute
	aDay
)

// forms are the ways to write a time.
var forms = []struct {
	layout string
	unit   int
}{
	{time.DateOnly, aDay}, {time.RFC3339, aSecond}, {"2006-01-02T15:04", aMinute}, {"2006-01-02T15:04:05", aSecond}, {"2006-01-02T15:04Z07:00", aMinute},
}

func moment(field, text string, zone *time.Location) (at time.Time, unit int, err error) {
	if text == "" {
		return time.Time{}, aSecond, nil
	}
	joined := strings.Replace(text, " ", "T", 1)
	for _, f := range forms {
		if at, err = time.ParseInLocation(f.layout, joined, zone); err == nil {
			return at, f.unit, nil
		}
	}
	return at, aSecond, fmt.Errorf("%s %.40q: want a day such as 2026-05-31, or a time such as 2026-05-31 14:00 or 2026-05-31T14:00:00Z: %w", field, text, tidemark.ErrInvalid)
}
