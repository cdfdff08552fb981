package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/archive"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room/replay"
	"github.com/tidemark-ai/tidemark/room/search"
	"github.com/tidemark-ai/tidemark/session"
)

// Server is a running server of any host, asked by the routes of docs/http.md. Headroom and tail are its
// own settings, and it compacts whenever the log fills the context, so that there may be more cycles than were asked;
// compaction.strategies must name pointer for markers to stand there.
type Server struct {
	Base  string // URL without a slash at its end
	Token string
	Key   string // of a session that is not there yet
	Via   http.RoundTripper
	Said  int // needles that are posted as messages, each of which its model answers
}

// maxAnswer bounds an answer that is read.
const maxAnswer = 64 << 20

// Run plays the log of a Needles through the import of a server, posts some needles more as messages, and
// asks for all of them.
func (v Server) Run(ctx context.Context, n Needles) (out Found, err error) {
	if err := n.check(); err != nil {
		return out, err
	}
	if n.Budget < session.MinWindow {
		return out, fmt.Errorf("--budget %d: a server takes %d and more: %w", n.Budget, session.MinWindow, tidemark.ErrInvalid)
	}
	sc := n.script()
	var got replay.Result
	const rounds = 8
	for round, events := 0, sc.least(); ; round, events = round+1, 2*events { // what is there is passed over
		n.Told.tell("events to import", events, 0)
		if got, err = v.play(ctx, sc, events); err != nil {
			return out, err
		}
		if got.Compactions >= n.Cycles {
			break
		}
		if round == rounds || events > maxEvents {
			return out, fmt.Errorf("%d messages made %d compactions of %d: lower --budget, or see compaction.strategies of the server: %w", got.Messages, got.Compactions, n.Cycles, tidemark.ErrInvalid)
		}
	}
	questions := sc.questions(func(int) bool { return false })
	more, err := v.say(ctx, n.Told)
	if err != nil {
		return out, err
	}
	if err := v.view(ctx, &out); err != nil {
		return out, err
	}
	questions = append(questions, more...)
	a, err := put(ctx, n.Told.asking(v.ask, len(questions)), questions)
	out.take(a)
	return out, err
}

// play imports the first events of a log.
func (v Server) play(ctx context.Context, sc *script, events int) (got replay.Result, err error) {
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() { // ends with the request, whose end closes r
		defer close(written)
		w.CloseWithError(sc.lines(w, events))
	}()
	path := "/import?format=jsonl&window=" + strconv.FormatInt(int64(sc.n.Budget), 10)
	err = v.call(ctx, http.MethodPost, path, r, &got)
	err = cmp.Or(err, r.Close())
	<-written
	return got, err
}

// lines writes events as an import reads them.
func (sc *script) lines(w io.Writer, events int) error {
	var line []byte
	for i := 1; i <= events; i++ {
		for _, m := range sc.event(i) {
			var err error
			if line, err = archive.AppendLine(line[:0], tidemark.Entry{Kind: tidemark.KindMessage, At: at(i), Payload: m.AppendJSON(nil)}); err != nil {
				return err
			}
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// say posts needles as messages, and returns what is asked for them.
func (v Server) say(ctx context.Context, told Told) (out []asked, err error) {
	for i := range v.Said {
		told.tell("messages posted", i, v.Said)
		want := fmt.Sprintf("SAID_FACT_%d_secret_value_%d", i, (i*7901)%99971)
		raw, err := json.Marshal(map[string]string{"text": "Keep in mind: " + want + " is the tag of the " + word(12_000+i) + " boat."})
		if err != nil {
			return nil, err
		}
		if err := v.call(ctx, http.MethodPost, "/messages", bytes.NewReader(raw), nil); err != nil {
			return nil, fmt.Errorf("post message %d: %w", i+1, err)
		}
		out = append(out, asked{kindSaid, want, want})
	}
	return out, nil
}

// view counts what stands in the context.
func (v Server) view(ctx context.Context, out *Found) error {
	var info tidemark.SessionInfo
	if err := v.call(ctx, http.MethodGet, "", nil, &info); err != nil {
		return err
	}
	out.Cycles, out.Messages = info.Compactions, info.Messages
	var view struct {
		Items []struct {
			Overlay tidemark.EntryID `json:"overlay"`
			Blocks  []struct {
				Text string `json:"text"`
			} `json:"blocks"`
		} `json:"items"`
	}
	if err := v.call(ctx, http.MethodGet, "/view?messages=0", nil, &view); err != nil {
		return err
	}
	markers := 0
	for _, it := range view.Items {
		if it.Overlay != "" && len(it.Blocks) > 0 && strings.HasPrefix(it.Blocks[0].Text, compaction.MarkerPrefix) {
			markers++
		} else {
			out.InContext++
		}
	}
	if bound := most(out.Cycles); markers > 0 {
		out.Markers, out.Most = &markers, &bound
	}
	return nil
}

// ask asks one question.
func (v Server) ask(ctx context.Context, query string) (r search.Recalled, err error) {
	q := url.Values{"q": {query}, "k": {strconv.Itoa(recallAt)}}
	return r, v.call(ctx, http.MethodGet, "/recall?"+q.Encode(), nil, &r)
}

// call makes a request of the session and decodes the answer.
func (v Server) call(ctx context.Context, method, path string, body io.Reader, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, v.Base+"/v1/sessions/"+url.PathEscape(v.Key)+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if v.Token != "" {
		req.Header.Set("Authorization", "Bearer "+v.Token)
	}
	resp, err := v.Via.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, v.Base, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", v.Base, err)
	}
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &said) == nil && said.Error.Message != "" || resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s%s answered %d: %s: %w", method, v.Base, strings.SplitN(path, "?", 2)[0], resp.StatusCode, said.Error.Message, tidemark.ErrInvalid)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("answer of %s: %w", v.Base, err)
	}
	return nil
}
