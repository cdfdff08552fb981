package session

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// bare opens a session that answers nobody.
func bare(t *testing.T) *Session {
	t.Helper()
	s, err := Open(t.Context(), Config{Key: "agent:main:main", DB: hosttest.DB(t), Runtime: hosttest.Runtime(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logged appends a message and returns its entry.
func (s *Session) logged(t *testing.T, from, text string) tidemark.EntryID {
	t.Helper()
	h, err := s.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := tidemark.EntryID(tidemark.NewID(s.Runtime.Now()))
	err = s.log.Append(t.Context(), h.Log, tidemark.Entry{ID: id, Kind: tidemark.KindMessage, At: s.Runtime.Now(), Origin: tidemark.Origin{From: from, Owner: true},
		Payload: tidemark.NewText(tidemark.User, text).AppendJSON(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// FuzzQuoted: no text ends its quotation.
func FuzzQuoted(f *testing.F) {
	f.Add("a\r\nb\u2028c\vd")
	f.Fuzz(func(t *testing.T, text string) {
		s := &Session{}
		s.now.Store(&Settings{Zone: time.UTC})
		for i, line := range strings.FieldsFunc(s.pushed(Recollection{Text: text}), func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			if i > 0 && !strings.HasPrefix(line, "| ") || strings.Contains(line, "<system-reminder") {
				t.Errorf("line %d is %q", i, line)
			}
		}
	})
}
