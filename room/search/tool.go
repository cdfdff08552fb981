package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/room"
)

// Tool is recall in one conversation.
var Tool = tidemark.Tool{
	Name: room.RecallTool,
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

// Tools implements room.Tools: the markers and stubs in the view name recall. Only an owner's finds more in other
// conversations than in its own.
func (s *Room) Tools(bool) []tidemark.Tool {
	if _, ok := wideOf(s.Agent); ok && s.Key.Scope().Owner {
		return []tidemark.Tool{WideTool}
	}
	return []tidemark.Tool{Tool}
}

// Call answers a call of recall.
func (s *Room) Call(ctx context.Context, c room.Call) tidemark.Block {
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
	err := unknownField(c.Input)
	if err == nil {
		err = json.Unmarshal(c.Input, &in)
	}
	back := in.Entry+in.Episode != ""
	switch {
	case err != nil:
		err = fmt.Errorf("input: %w", err)
	case !back && strings.TrimSpace(in.Query) == "":
		err = fmt.Errorf("input: want query, the words to look for, or entry, the id of one to read, or episode, its name: %w", tidemark.ErrInvalid)
	case in.Budget < 0:
		err = fmt.Errorf("budget %d: want 1 or more tokens, or none: %w", in.Budget, tidemark.ErrInvalid)
	default:
		err = c.May(ctx, !back)
	}
	text := ""
	switch {
	case err != nil:
	case back:
		var out tidemark.Block
		if out, err = s.readBack(ctx, c, in.Entry, in.Episode, in.Offset); err == nil {
			return out
		}
	default:
		w := Wanted{Query: in.Query, K: min(in.K, maxToolK), Budget: toolBudget, All: in.All, told: true}
		if in.Budget > 0 {
			w.Budget = min(max(tidemark.Tokens(in.Budget), minToolBudget), maxToolBudget)
		}
		scope := recall.ScopeSession
		if w.before, err = c.Begun(ctx); err == nil {
			w.Since, w.Until, err = s.Between(in.Since, in.Until)
		}
		if err == nil {
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
		return tidemark.ToolResult(c.ID, strings.TrimSuffix(err.Error(), ": "+tidemark.ErrInvalid.Error()), true)
	}
	return tidemark.ToolResult(c.ID, text, false)
}

// Bounds of what a model is shown in a turn.
const (
	maxToolK      = 20
	toolBudget    = tidemark.Tokens(4_000) // papers/total-recall: of a pull
	maxToolBudget = tidemark.Tokens(16_000)
	minToolBudget = tidemark.Tokens(250) // a verdict and a result or two
	headTokens    = tidemark.Tokens(150) // of what stands before the results, at most
)

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
func (s *Room) tellRecall(ctx context.Context, w Wanted) (string, error) {
	found, err := s.Recall(ctx, w)
	if err != nil {
		return "", err
	}
	s.Note(ctx, room.ByModel, found)
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
func (s *Room) toldCost(r Recollection) int {
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
func (s *Room) tellResult(b *strings.Builder, r Recollection, where string) {
	place := ""
	if r.Offset > 0 {
		place = fmt.Sprintf(" at offset %d", r.Offset)
	}
	fmt.Fprintf(b, "\n\n[%s] %s%s, entry %s%s, %.0f %%:", r.At.In(s.Zone()).Format("2006-01-02 15:04"), cmp.Or(r.From, string(r.Role)), where, r.ID, place, 100*r.Coverage)
	for line := range strings.Lines(strings.TrimSpace(plainLines(r.Text))) {
		b.WriteString("\n| " + strings.TrimRight(line, "\n"))
	}
}

// Between reads two times of a query: a day or a time where the agent is, as markers and results say it, or one of RFC
// 3339; empty is open. Until a day is until its end, and until a minute until the end of that.
func (s *Room) Between(since, until string) (from, to time.Time, err error) {
	return Between(since, until, s.Zone())
}

// Between is [Room.Between] in a zone.
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
