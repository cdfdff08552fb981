package claude

import (
	"bytes"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/transcript"
)

// meter counts the messages of a log, and what a model would read at its end: what the last call reported to have sent,
// and an estimate of what came since. The command cost reckons alike, so that both tell one size.
type meter struct {
	messages int
	message  string // id of the last one, when it is an answer
	project  string // the first that a line names
	sent     tidemark.Tokens
	since    tidemark.Tokens // estimate of what came behind what was sent
	live     tidemark.Tokens // estimate of all behind the last compaction
	prefix   tidemark.Tokens // what the first call sent beyond the messages; 0 while no call said
}

// tokens is the size of the context at the end.
func (m *meter) tokens() tidemark.Tokens {
	if m.sent == 0 {
		return m.fixed() + m.live
	}
	return m.sent + m.since
}

// fixed is what of the context is system prompt and tools.
func (m *meter) fixed() tidemark.Tokens {
	if m.prefix == 0 {
		return transcript.TypicalPrefix
	}
	return m.prefix
}

// trimmed is the size of the context when its messages are trimmed, from an estimate of before to one of after: system
// prompt and tools stay, and the messages become less by the share that the estimates tell.
func (m *meter) trimmed(before, after tidemark.Tokens) tidemark.Tokens {
	all := m.tokens()
	fixed := transcript.Prefix(m.fixed(), all, m.live)
	if before <= 0 || after >= before {
		return all
	}
	return fixed + tidemark.Tokens(float64(all-fixed)*float64(after)/float64(before)+0.5)
}

func (m *meter) add(l transcript.Line) {
	if m == nil || l.Err != nil || l.Blank() {
		return
	}
	if m.project == "" {
		m.project = l.Get("cwd")
	}
	if l.EndsContext() {
		m.sent, m.since, m.live = 0, 0, 0
	}
	role, ok := l.Role()
	if !ok || l.Flag("isSidechain") {
		return
	}
	id := ""
	if role == tidemark.Assistant {
		if f, ok := l.MessageField("id"); ok {
			id = l.Text(f)
		}
	}
	if id == "" || id != m.message {
		m.messages++
	}
	m.message = id
	m.call(sentBy(l))
	n := estimate(l)
	m.since, m.live = m.since+n, m.live+n
}

// call takes what a call sent. All lines of an answer say the same, and what they hold was not yet sent.
func (m *meter) call(sent tidemark.Tokens) {
	if sent == 0 || sent == m.sent {
		return
	}
	if m.sent == 0 { // the first since the beginning, or since a compaction
		if p := max(1, sent-m.live); m.prefix == 0 || p < m.prefix {
			m.prefix = p
		}
	}
	m.sent, m.since = sent, 0
}

// sentBy is the size of the context that an answer was given to, 0 for a line that does not say.
func sentBy(l transcript.Line) tidemark.Tokens {
	u := usageOf(l)
	return max(0, u.Input) + max(0, u.CacheRead) + max(0, u.CacheCreation)
}

func usageOf(l transcript.Line) (u tidemark.Usage) {
	const most = 16 << 10
	f, ok := l.MessageField("usage")
	if !ok || f.Kind != transcript.Object {
		return u
	}
	if f.Size() > most || json.Unmarshal(l.Bytes(f), &u) != nil {
		return tidemark.Usage{}
	}
	return u
}

// estimate estimates what a model reads of one line.
func estimate(l transcript.Line) tidemark.Tokens {
	f, ok := l.MessageField("content")
	if !ok {
		return 0
	}
	const most = 1 << 20
	if f.Size() > most {
		return tidemark.ImageTokens // nothing but an image has a line of that size in a context
	}
	raw := l.Bytes(f)
	if bytes.Contains(raw, []byte(`"base64"`)) {
		msg := tidemark.Message{Role: tidemark.User}
		if json.Unmarshal(raw, &msg.Content) == nil {
			return tidemark.Estimate(msg)
		}
	}
	return tidemark.EstimateChars(tidemark.UTF16Len(raw))
}
