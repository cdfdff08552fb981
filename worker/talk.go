package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// Headers of the doors for clients of other APIs.
const (
	headerSession   = "X-Tidemark-Session"   // the key of the conversation that a request is of, and that it was of
	headerIgnored   = "X-Tidemark-Ignored"   // what a request asked for and did not get
	headerDuplicate = "X-Tidemark-Duplicate" // the request had been received before
)

// userChannel holds the conversations of those whom a client names as its "user": they are its end users
// and not the holder of the token, so none of them has the owner's rights (tidemark.Key.Local).
const userChannel = "user"

// Model is what answers calls that belong to no conversation.
type Model struct {
	Provider tidemark.Provider
	ID       string // as configured
	// Messages and Chat are where requests of clients that keep their history themselves are passed on to.
	Messages, Chat Upstream
	// Treatment is what is done with such requests that do not say, as package proxy names it; "" and "off": they
	// are passed on as they are, and nothing is kept of them.
	Treatment string
}

// talk is what a client of another API says in a conversation that is kept here: all that it sent.
// Only what follows the last message of the assistant is new.
type talk struct {
	key      tidemark.Key
	channel  string
	messages []tidemark.Message // neighbours of one role are merged
	ignored  []string
	byModel  bool // the agent was named by the model's name
}

// input is what is new, under an id that names the whole request: the messages before it by what makes them the
// same (tidemark.Chain), and what is new by its bytes.
func (t talk) input() (session.Input, error) {
	in := session.Input{Origin: tidemark.Origin{From: tidemark.FromPerson, Channel: t.channel, Owner: t.key.Channel() != userChannel}}
	n := len(t.messages)
	if n == 0 {
		return in, fmt.Errorf("messages: there is none from the user: %w", tidemark.ErrInvalid)
	}
	in.Message = t.messages[n-1]
	if in.Message.Role != tidemark.User {
		return in, fmt.Errorf("messages: the last one is the assistant's, and an answer that was begun elsewhere cannot be gone on with; end with what the user says: %w", tidemark.ErrInvalid)
	}
	if len(in.Message.Results()) > 0 {
		return in, fmt.Errorf("messages: the last one answers a tool call, and a conversation that is kept here runs its own tools; leave out %s and \"user\" to call the model without one: %w",
			headerSession, tidemark.ErrInvalid)
	}
	in.Message.Content = unmarked(in.Message.Content)
	if len(in.Message.Content) == 1 && in.Message.Content[0].Type == tidemark.TypeText {
		in.Message = tidemark.NewText(tidemark.User, in.Message.Content[0].Text)
	}
	var before tidemark.Hash
	for _, m := range t.messages[:n-1] {
		before = tidemark.Chain(before, m)
	}
	in.ID = "chain-" + string(tidemark.HashOf(in.Message.AppendJSON([]byte(before))))
	return in, in.Validate()
}

// unmarked makes text blocks anew: cache markers of the client are no part of what was said, and a
// retry may have others.
func unmarked(blocks []tidemark.Block) []tidemark.Block {
	out := make([]tidemark.Block, len(blocks))
	for i, b := range blocks {
		if out[i] = b; b.Type == tidemark.TypeText {
			out[i] = tidemark.Text(b.Text)
		}
	}
	return out
}

// converse says what is new in the conversation and has the dialect answer.
func converse(c *request, t talk, to dialect) (any, error) {
	in, err := t.input()
	if err != nil {
		return nil, err
	}
	by := asWhole
	if len(t.messages) == 1 {
		by = asWords
	}
	if own := c.r.Header.Get("Idempotency-Key"); own != "" {
		in.ID, by = own, asKey
	}
	if len(in.ID) > maxNamed {
		return nil, fmt.Errorf("header Idempotency-Key has %d bytes, at most %d: %w", len(in.ID), maxNamed, tidemark.ErrInvalid)
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	s, err := c.open(t)
	if err != nil {
		return nil, err
	}
	last, ok, err := s.LastTry(c.r.Context(), in.ID)
	if err != nil {
		return nil, fmt.Errorf("find what was said before: %w", err)
	}
	if ok {
		in.ID = by.id(last, c.Runtime.Now())
	}
	h := c.w.Header()
	h.Set(headerSession, string(t.key))
	c.ignore(t.ignored)
	return nil, c.say(s, in, to)
}

// open returns the session of a talk, which may be new.
func (c *request) open(t talk) (*session.Session, error) {
	if all, ok := c.Actors.(Lister); ok && t.byModel {
		if err := c.agentThere(all, t.key); err != nil {
			return nil, err
		}
	}
	if err := writable(t.key); err != nil {
		return nil, err
	}
	return c.enter(t.key, true)
}

// agentThere refuses a new session of an agent that is not there: a model's name makes none, since a slip
// of the pen would stay for good. To list agents may cost a call to another object, so a session that is
// there is enough.
func (c *request) agentThere(all Lister, key tidemark.Key) error {
	ctx := c.r.Context()
	_, err := c.Actors.Session(ctx, key, false)
	if !errors.Is(err, tidemark.ErrNotFound) {
		return err
	}
	return isThere(ctx, all, key.Agent())
}

// isThere refuses a model's name that names no agent there is.
func isThere(ctx context.Context, all Lister, agent string) error {
	names, err := all.Agents(ctx)
	if err != nil {
		return fmt.Errorf("list agents: %w", err)
	}
	if !slices.Contains(names, agent) {
		return noModel(ownModel + ":" + agent)
	}
	return nil
}

// noModel refuses a model that is not there.
func noModel(name string) error {
	return &refused{http.StatusNotFound, "model_not_found", fmt.Sprintf("model %s: there is no such model; GET /v1/models lists them", clip(name, 80))}
}

// ignore says in a header what a request asked for and does not get.
func (c *request) ignore(names []string) {
	if len(names) > 0 {
		c.w.Header().Set(headerIgnored, strings.Join(names, ", "))
	}
}

// keyOf returns the key of a conversation that a client names in its own words. Names that a key holds
// as they are stay; of all others the key has a readable part and a digest, so that two names are never
// one conversation, whatever their case and letters. build/doors.mjs does the same, and
// testdata/doors.json holds both to the same rows.
func keyOf(agent, channel, name string) (tidemark.Key, error) {
	if agent == "" {
		agent = "main"
	}
	return tidemark.ParseKey("agent:" + agent + ":" + channel + ":dm:" + peerOf(name))
}

// Bounds of peerOf.
const (
	maxPeer    = 80 // bytes of a name that stays as it is
	peerPrefix = 40 // bytes of a name that are shown before its digest
	peerDigest = 32 // characters of the digest
)

func peerOf(name string) string {
	if fitsKey(name) && !digested(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	var b strings.Builder
	for i := 0; i < len(name) && i < peerPrefix; i++ {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case keyByte(c):
			b.WriteByte(c)
		default:
			b.WriteByte('_')
		}
	}
	return b.String() + "-" + hex.EncodeToString(sum[:])[:peerDigest]
}

func fitsKey(name string) bool {
	if name == "" || len(name) > maxPeer || strings.Trim(name, ".") == "" {
		return false
	}
	for i := range len(name) {
		if !keyByte(name[i]) {
			return false
		}
	}
	return true
}

func keyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-_.@+", c) >= 0
}

// digested reports whether a name looks like one that peerOf has made.
func digested(name string) bool {
	at := len(name) - peerDigest
	if at < 2 || name[at-1] != '-' {
		return false
	}
	for _, c := range []byte(name[at:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// speech is the text of an answer as a client hears it that can take nothing back. It is pure. The zero
// value is ready.
type speech struct {
	atEnd bool            // nothing is heard before the end, so only replies that are complete count
	last  string          // the reply that was complete last
	told  strings.Builder // of the call in work
	again string          // what was told before the call began again, until the new pieces have said it too
	since string          // the new pieces meanwhile
	parts int             // replies of the turn that had a text
}

// Texts between what cannot be taken back.
const (
	betweenReplies = "\n\n"
	brokenOff      = "\n\n[The answer was cut off here and begins again.]\n\n"
)

// piece takes a piece of the call in work and returns what is to be told.
func (s *speech) piece(text string) string {
	if s.atEnd {
		return ""
	}
	if s.again == "" {
		return s.tell(text)
	}
	s.since += text
	switch {
	case len(s.since) < len(s.again) && strings.HasPrefix(s.again, s.since):
		return "" // so far it says the same again
	case strings.HasPrefix(s.since, s.again):
		text = s.since[len(s.again):]
		s.again, s.since = "", ""
		return s.tell(text)
	}
	text = s.since
	s.again, s.since = "", ""
	return s.anew(text)
}

// anew tells a text that does not go on with what was told.
func (s *speech) anew(text string) string {
	s.told.Reset()
	s.told.WriteString(text)
	return brokenOff + text
}

func (s *speech) tell(text string) string {
	if text == "" {
		return ""
	}
	first := s.told.Len() == 0
	s.told.WriteString(text)
	if first && s.parts > 0 {
		return betweenReplies + text
	}
	return text
}

// restart says that the call in work begins again.
func (s *speech) restart() {
	if s.again == "" {
		s.again = s.told.String()
	}
	s.since = ""
}

// whole takes the text of a reply that is complete and returns what of it was not told.
func (s *speech) whole(text string) string {
	rest, ok := strings.CutPrefix(text, s.told.String())
	s.again, s.since, s.last = "", "", text
	out := ""
	switch {
	case ok:
		out = s.tell(rest)
	case text != "":
		out = s.anew(text)
	}
	if s.told.Len() > 0 {
		s.parts++
	}
	s.told.Reset()
	return out
}

// rest is what was not told of an answer when its turn has ended: its notices may have been missed.
func (s *speech) rest(out outcome) string {
	if s.parts > 0 && !s.missed(out) {
		return ""
	}
	return s.whole(out.answer())
}

// missed reports whether the last reply of a turn was not told.
func (s *speech) missed(out outcome) bool { return out.Reply != nil && flat(out.Reply) != s.last }

// flat is the text of a message as its pieces were, without anything between blocks.
func flat(m *tidemark.Message) string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	for _, block := range m.Content {
		if block.Type == tidemark.TypeText {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}
