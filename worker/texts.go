package worker

import (
	"strings"

	"github.com/tidemark-ai/tidemark/session"
)

// texts is what the dialects of APIs have in common that have words for text only: tools of the conversation are run
// here. The head of a stream is sent with the first piece, so that what fails before is a status, which clients
// understand better.
type texts struct {
	*request
	live      bool // the client wants a stream
	errorForm errorForm

	speech
	text   strings.Builder // the replies, when it is to be whole
	stream *stream         // once it has begun

	head func() error       // sends the head of a stream
	send func(string) error // sends a piece of text behind it
}

func (t *texts) tell(n session.Notice) error {
	switch n.Type {
	case session.NoticeText:
		return t.say(t.piece(n.Text))
	case session.NoticeRestart:
		t.restart()
	case session.NoticeReply:
		return t.say(t.whole(flat(n.Message)))
	case session.NoticeApproval:
		return t.say(t.whole(n.Text))
	}
	return nil
}

// say tells a piece of text.
func (t *texts) say(text string) error {
	switch {
	case text == "":
		return nil
	case !t.live:
		t.text.WriteString(text)
		return nil
	}
	if err := t.start(); err != nil {
		return err
	}
	return t.send(text)
}

// start begins the stream, unless it has begun.
func (t *texts) start() error {
	if t.stream != nil {
		return nil
	}
	t.stream = t.begin()
	return t.head()
}

// ping is a sign of life: a comment, or in the Messages API an event.
func (t *texts) ping() error {
	if !t.live {
		return nil
	}
	if err := t.start(); err != nil {
		return err
	}
	if t.errorForm == anthropic {
		return t.stream.event("ping", typeOnly{"ping"})
	}
	return t.stream.ping()
}

func (t *texts) fail(err error) error {
	if t.stream == nil {
		return err
	}
	defer t.stream.end()
	return t.stream.fail(t.errorForm, err)
}
