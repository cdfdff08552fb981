package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/lexicon"
	"github.com/tidemark-ai/tidemark/memory"
	"github.com/tidemark-ai/tidemark/recall"
)

// said is what a person said, as far as the task is read from it.
type said struct {
	id   tidemark.EntryID
	at   time.Time
	text string
}

// Bounds of what is read for a task.
const (
	maxSaid        = 100  // messages of persons that are looked at
	maxSaidTokens  = 4096 // what is longer was pasted
	recentMessages = 40   // messages that open calls are read from
)

// said returns what those persons said lately in a log who may set its task, newest first.
func (s *Room) said(ctx context.Context, log string) ([]said, error) {
	rows, err := s.DB.Query(ctx, `SELECT id, at, origin, payload FROM entries WHERE log = ? AND kind = 'message' AND role = 'user'
		AND tokens <= ? AND origin LIKE '{"from":"person"%' ORDER BY seq DESC LIMIT ?`, log, maxSaidTokens, maxSaid)
	if err != nil {
		return nil, fmt.Errorf("read what was said: %w", err)
	}
	var out []said
	for _, r := range rows {
		var o tidemark.Origin
		if json.Unmarshal(r.Bytes(2), &o) != nil || !s.setsTask(o) {
			continue
		}
		m, err := tidemark.Entry{Payload: r.Bytes(3)}.Message()
		if err != nil {
			continue
		}
		if text := recall.OwnWords(m); strings.ContainsFunc(text, wordRune) {
			out = append(out, said{tidemark.EntryID(r.Text(0)), time.UnixMilli(r.Int(1)), text})
		}
	}
	return out, nil
}

// saidIn returns the newest of some messages that has each sentence of a text, word for word but for case and
// punctuation. A part of a sentence is not enough: half a rule may say the opposite.
func saidIn(messages []said, text string) tidemark.EntryID {
	want := sentences(text)
	i := slices.IndexFunc(messages, func(m said) bool {
		has := sentences(m.text)
		return len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(has, w) })
	})
	if i < 0 {
		return ""
	}
	return messages[i].id
}

// sentences returns those of a text that have a word, folded.
func sentences(text string) []string {
	var out []string
	for w := range lexicon.Sentences(text) {
		if !strings.ContainsAny(w, "?？") && strings.ContainsFunc(w, wordRune) {
			out = append(out, memory.Fold(strings.Trim(w, " \t\r\n-*•")))
		}
	}
	return out
}

func wordRune(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// setsTask reports whether what somebody says may set the task: in the owner's conversation only what the
// owner says, whoever else talks there. What the holder of the token imported is the owner's.
func (s *Room) setsTask(o tidemark.Origin) bool {
	return s.MayChange(o) || o.Channel == tidemark.ChannelImport
}

// derived returns the card of a log whose task nobody keeps: what a person said last, word for word, and calls
// of tools that failed or have no result. Ranking does not use it.
func (s *Room) derived(ctx context.Context, log string) (Card, error) {
	asked, err := s.said(ctx, log)
	if err != nil {
		return Card{}, err
	}
	var recent []spoken
	for e, err := range s.Log.Walk(ctx, log, 0) {
		if err != nil {
			return Card{}, err
		}
		if e.Kind != tidemark.KindMessage {
			continue
		}
		m, err := e.Message() // as stored: of a large block only its name and state matter
		if err != nil {
			return Card{}, fmt.Errorf("read entry %s: %w", e.ID, err)
		}
		if recent = append(recent, spoken{e.ID, e.At, m}); len(recent) == recentMessages {
			break
		}
	}
	slices.Reverse(recent)
	var c Card
	if len(asked) > 0 {
		c = c.derivedItem(Goal, asked[0].text, tidemark.FromPerson, asked[0].id, asked[0].at)
	}
	for _, o := range openCalls(recent) {
		c = c.derivedItem(Loop, o.why, tidemark.FromTool, o.id, o.at)
	}
	return c, nil
}

func (c Card) derivedItem(k ItemKind, text, by string, entry tidemark.EntryID, at time.Time) Card {
	c, _ = c.add(Added{Kind: k, Text: text, Entry: entry}, by, entry, at)
	return c
}

// spoken is one of the newest messages.
type spoken struct {
	id tidemark.EntryID
	at time.Time
	m  tidemark.Message
}

// openCall is a call that a derived card shows as an open loop.
type openCall struct {
	id  tidemark.EntryID // of its result, or of the message that has the call
	at  time.Time
	why string
}

// openCalls returns the tools whose last call failed and the calls that have no result, in their order.
func openCalls(recent []spoken) []openCall {
	type called struct {
		openCall
		id, name string
		open     bool
	}
	var calls []called
	for _, m := range recent {
		for _, b := range m.m.Content {
			switch b.Type {
			case tidemark.TypeToolUse:
				calls = append(calls, called{openCall{m.id, m.at, "the call of " + b.Name + " has no result yet"}, b.ID, b.Name, true})
			case tidemark.TypeToolResult:
				if i := slices.IndexFunc(calls, func(c called) bool { return c.id == b.ToolUseID }); i >= 0 {
					calls[i].openCall = openCall{m.id, m.at, "the last call of " + calls[i].name + " failed"}
					calls[i].open = b.IsError
				}
			}
		}
	}
	var out []openCall
	for i, c := range calls {
		if c.open && !slices.ContainsFunc(calls[i+1:], func(later called) bool { return later.name == c.name && later.openCall.id != c.openCall.id }) {
			out = append(out, c.openCall)
		}
	}
	return out
}
