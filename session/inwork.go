package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// InWork returns the oldest message that has no answer yet: of the run in work, or the first that waits.
// A client that comes back follows it. ok is false when there is none.
func (s *Session) InWork(ctx context.Context) (r Receipt, ok bool, err error) {
	rows, err := s.DB.Query(ctx, `SELECT id, state, run FROM inputs WHERE key = ? AND kind = ? AND state IN ('taken', 'new') ORDER BY n LIMIT 1`, string(s.Key), InputMessage)
	if err != nil {
		return r, false, fmt.Errorf("find input in work: %w", err)
	}
	if len(rows) == 0 {
		return r, false, nil
	}
	r = Receipt{ID: rows[0].Text(0), State: rows[0].Text(1), Run: rows[0].Text(2), Duplicate: true}
	r.Session, err = s.log.Ref(ctx, headRef(s.Key))
	return r, true, err
}

// Try is an input that was said before: the newest under its id, or under its id with a number behind it, which is
// how it is said anew.
type Try struct {
	ID     string
	Anew   string    // the id to say it under once more
	Open   bool      // its turn has not ended
	Failed bool      // its turn has failed
	Ended  time.Time // its turn, if it has
	Reset  bool      // the conversation began anew since, or is about to
	Last   bool      // no message came behind it
}

// What stands between an id and the number of a try, and how many digits the number has at most.
const (
	tryMark, tryEnd = "~", "\x7f" // ids with the mark sort between the two
	tryDigits       = 9
)

// LastTry returns the newest try of an id; ok is false when there is none.
func (s *Session) LastTry(ctx context.Context, id string) (t Try, ok bool, err error) {
	number := utf8.RuneCountInString(id+tryMark) + 1 // where it begins
	rows, err := s.DB.Query(ctx, `SELECT i.id, coalesce(r.state, i.state), coalesce(r.updated, i.at),
			coalesce(r.log, '') <> h.log OR EXISTS (SELECT 1 FROM inputs j WHERE j.key = i.key AND j.state IN ('new', 'taken') AND j.n > i.n AND j.kind = ?),
			NOT EXISTS (SELECT 1 FROM inputs j WHERE j.key = i.key AND j.state IN ('new', 'taken', 'done') AND j.n > i.n AND j.kind = ?)
		FROM inputs i JOIN heads h ON h.key = i.key LEFT JOIN runs r ON r.id = i.run
		WHERE i.key = ? AND (i.id = ? OR i.id > ? AND i.id < ? AND substr(i.id, ?) NOT GLOB '*[^0-9]*' AND length(i.id) < ?) ORDER BY i.n DESC LIMIT 1`,
		InputReset, InputMessage, string(s.Key), id, id+tryMark, id+tryEnd, number, number+tryDigits)
	if err != nil || len(rows) == 0 {
		return t, false, err
	}
	r := rows[0]
	state := r.Text(1)
	t = Try{ID: r.Text(0), Open: state != stateDone && state != stateFailed, Failed: state == stateFailed,
		Ended: time.UnixMilli(r.Int(2)), Reset: r.Int(3) != 0, Last: r.Int(4) != 0}
	n := 1
	if digits, ok := strings.CutPrefix(t.ID, id+tryMark); ok {
		if n, err = strconv.Atoi(digits); err != nil {
			return t, false, fmt.Errorf("read input %s: %w", t.ID, err)
		}
	}
	t.Anew = id + tryMark + strconv.Itoa(n+1)
	return t, true, nil
}

// lastReply returns the newest reply in a log, empty for none.
func (s *Session) lastReply(ctx context.Context, log string) (tidemark.EntryID, error) {
	rows, err := s.DB.Query(ctx, `SELECT id FROM entries WHERE log = ? AND kind = ? AND role = ? ORDER BY seq DESC LIMIT 1`,
		log, string(tidemark.KindMessage), string(tidemark.Assistant))
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return tidemark.EntryID(rows[0].Text(0)), nil
}

// maxTurn bounds the messages of one turn that Replies looks through.
const maxTurn = 400

// Replies returns what the model has said to an input, oldest first: the replies of its run behind the input
// itself, up to one of them. A last one of before the input gives none.
func (s *Session) Replies(ctx context.Context, input string, last tidemark.EntryID) ([]tidemark.Entry, error) {
	rows, err := s.DB.Query(ctx, `SELECT e.seq, e.role, e.origin, i.run FROM inputs i JOIN runs r ON r.id = i.run JOIN entries e ON e.log = r.log AND e.kind = ?
		WHERE i.key = ? AND i.id = ? AND e.seq <= (SELECT seq FROM entries WHERE id = ?) ORDER BY e.seq DESC LIMIT ?`,
		string(tidemark.KindMessage), string(s.Key), input, string(last), maxTurn)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	with, _, err := s.inputsOf(ctx, rows[0].Text(3)) // it may stand between replies to the others of its run
	if err != nil {
		return nil, err
	}
	var seqs []int64
	found := len(rows) == maxTurn // of a longer turn the newest are enough
	for _, r := range rows {
		if tidemark.Role(r.Text(1)) == tidemark.Assistant {
			seqs = append(seqs, r.Int(0))
			continue
		}
		var o tidemark.Origin
		if err := json.Unmarshal(r.Bytes(2), &o); err != nil {
			return nil, fmt.Errorf("read entry %d: %w", r.Int(0), err)
		}
		if found = found || o.Input == input; o.Input == input {
			break
		}
		if o.Input != "" && !slices.Contains(with, o.Input) {
			return nil, nil
		}
	}
	if !found { // it came behind them
		return nil, nil
	}
	slices.Reverse(seqs)
	out, err := s.log.Payloads(ctx, seqs)
	for i := range out {
		if err == nil {
			out[i], err = s.Reader.Whole(ctx, out[i])
		}
	}
	return out, err
}
