package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/proxy/body"
)

// TestStatuses: an answer is taken if its status says that it is one; a request that the API calls invalid is forgotten, one that it
// has no time for or fails at is the same again.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]struct{ taken, forgotten bool }{
		0: {}, 100: {}, 199: {}, 200: {taken: true}, 299: {taken: true}, 300: {}, 399: {}, 400: {forgotten: true}, 401: {forgotten: true}, 428: {forgotten: true},
		429: {}, 430: {forgotten: true}, 499: {forgotten: true}, 500: {}, 529: {},
	} {
		r := newRig(t, proxy.Settings{})
		q, a, b := text("user", "q"), spoke("a"), text("user", "b")
		r.exchange("", request(q), reply("end_turn", textBlock("a")))
		x := r.begin(q, a, b)
		if r.c.Idle() {
			t.Errorf("%d: a request in work is none", status)
		}
		if status > 0 && x.Answer(t.Context(), status, false) != want.taken {
			t.Errorf("%d is taken %t", status, !want.taken)
		}
		if want.taken {
			x.Broken(t.Context(), nil)
			continue
		}
		if out, err := x.Finish(t.Context()); len(out) > 0 || err != nil {
			t.Errorf("%d: the client gets %q, %v", status, out, err)
		}
		if said := x.Broken(t.Context(), errors.New("late")); said != nil { // who is told of its end twice counts it once
			t.Errorf("%d: the client is told %s", status, said)
		}
		if !r.c.Idle() {
			t.Errorf("%d: an exchange is in work", status)
		}
		r.exchange("", request(q, a, text("user", "c")), reply("end_turn", textBlock("d")))
		first := map[bool]string{true: "q|a,c", false: "q"}[want.forgotten]
		if got := r.told(""); got != first {
			t.Errorf("%d: the first thread is %q, want %q", status, got, first)
		}
		same(t, r)
	}
}

// TestForgottenLater: a request that had no answer, is made again and is then called invalid is forgotten.
func TestForgottenLater(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	q, a, b := text("user", "q"), spoke("a"), text("user", "b")
	r.exchange("", request(q), reply("end_turn", textBlock("a")))
	r.refuse(r.begin(q, a, b), 529)
	r.refuse(r.begin(q, a, b), 400)
	r.exchange("", request(q, a, text("user", "c")), reply("end_turn", textBlock("d")))
	if got, want := r.told(""), "q|a,c"; got != want {
		t.Errorf("the thread is %q, want %q", got, want)
	}
}

// TestUntouchedNoted: a request that could not be treated and was answered is noted, with all that is known of it; one that was not
// answered, or whose size was asked for, is not.
func TestUntouchedNoted(t *testing.T) {
	const odd = `{"messages":"x"}`
	for status, noted := range map[int]bool{0: false, 199: false, 200: true, 299: true, 300: false, 400: false} {
		for _, count := range []bool{false, true} {
			r := newRig(t, proxy.Settings{Window: 5_000})
			x, err := r.c.Begin(t.Context(), proxy.Ask{Body: []byte(odd), Count: count, Treatment: proxy.Trim})
			if err != nil || x.Treatment() != proxy.Trim {
				t.Fatal(x.Treatment(), err)
			}
			if status > 0 && x.Answer(t.Context(), status, false) {
				t.Fatalf("%d is taken", status)
			}
			if _, err := x.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, why := x.Untouched()
			var want []proxy.Record
			if noted && !count {
				want = []proxy.Record{{Treatment: proxy.Trim, Untouched: why, Legs: 1, Window: 5_000, Account: paging.Account{Zone: "normal", In: len(odd), Sent: len(odd)}}}
			}
			if len(r.records) == 1 && len(want) == 1 {
				want[0].At = r.records[0].At
			}
			if !reflect.DeepEqual(r.records, want) || len(want) > 0 && !slices.Equal(r.called, []string{` "" +0`}) {
				t.Errorf("%d, count %t: %+v, want %+v; %q", status, count, r.records, want, r.called)
			}
		}
	}
}

// TestTreatmentOfRequest: a request may ask for a treatment of its own; one that there is not is the client's mistake.
func TestTreatmentOfRequest(t *testing.T) {
	r := newRig(t, proxy.Settings{Treatment: proxy.Trim})
	for _, name := range append(proxy.Treatments(), "") {
		x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(text("user", "q")), Treatment: name})
		if want := map[bool]string{true: proxy.Trim, false: name}[name == ""]; err != nil || x.Treatment() != want {
			t.Errorf("%q: %v", name, err)
		}
		x.Broken(t.Context(), nil)
	}
	if _, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(text("user", "q")), Treatment: "pages"}); !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), `"page+trim"`) {
		t.Errorf("a treatment that there is not: %v", err)
	}
}

// TestTold: those who follow a conversation hear of each answer that was stored, and what is stored for the first time is counted
// once: not what the log had before a restart, nor what the client never saw of it.
func TestTold(t *testing.T) {
	r, db := newFailing(t)
	r.rt = atOnce{r.rt}
	r.restart()
	read := call("c1", "Read", `{"file_path":"b.go"}`)
	history := []string{text("user", "read  it")}
	r.exchange("", request(history...), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["a.go"]}`), read))
	history = append(history, said(read), result("c1", "package b"))
	r.restart()
	r.exchange("", request(history...), reply("end_turn", textBlock("done")))
	db.off = true
	history = append(history, spoke("done"), text("user", "more"))
	r.exchange("", request(history...), reply("end_turn", textBlock("so")))
	db.off = false
	r.exchange("", request(append(history, spoke("so"), text("user", "on"))...), reply("end_turn", textBlock("end")))
	r.exchange("", request(history[0], spoke("other"), text("user", "instead")), reply("end_turn", textBlock("well")))
	if want := []string{` "read it" +2`, ` "read it" +2`, ` "read it" +4`, `t2 "read it" +3`}; !slices.Equal(r.called, want) {
		t.Errorf("stored %q, want %q", r.called, want)
	}
	if want := []string{"proxy: 1 messages, zone normal, 0 stubs", "proxy: 3 messages, zone normal, 0 stubs", "proxy: 7 messages, zone normal, 0 stubs", "proxy: 3 messages, zone normal, 0 stubs"}; !slices.Equal(r.news, want) {
		t.Errorf("told %q, want %q", r.news, want)
	}
	if rows, err := r.db.Query(t.Context(), `SELECT count(*) FROM proxy_edits WHERE key = ? LIMIT 1`, string(key)); err != nil || rows[0].Int(0) != 0 {
		t.Errorf("%d rows of tags that there were not, %v", rows[0].Int(0), err)
	}
}

// TestReplyInLog: a reply stands in the log with its call: the model that was asked for and the one that answered, why it stopped, and
// what was reported of the last call, which is how large its context was.
func TestReplyInLog(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	e := r.exchange("", request(text("user", "q")), reply("tool_use", call("p1", paging.FaultTool, `{"paths":["a.go"]}`)), reply("max_tokens", textBlock("a")))
	silent := bytes.Replace(reply("end_turn", textBlock("c")), []byte(`"input_tokens":100,"output_tokens":10`), nil, 1)
	r.exchange("", request(text("user", "q"), spoke("a"), text("user", "b")), silent)
	var got []string
	for e, err := range r.s.Reader.All(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprint(e.Origin.From, " ", e.Origin.Channel)
		if e.Call != nil {
			s += fmt.Sprintf(" %+v", *e.Call)
		}
		got = append(got, s)
	}
	want := []string{"person proxy", fmt.Sprintf("model proxy %+v", tidemark.Call{Model: "m", Requested: "m", Stop: "max_tokens", RequestID: "msg_1",
		Usage: tidemark.Usage{Input: tidemark.Tokens(len(e.sent[1]) / 4), Output: 10}, Reported: true}),
		"person proxy", fmt.Sprintf("model proxy %+v", tidemark.Call{Model: "m", Requested: "m", Stop: "end_turn", RequestID: "msg_1"})}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if list := r.steps(""); len(list) != 2 || list[0].Usage == nil || list[1].Usage != nil {
		t.Errorf("requests %+v", list)
	}
}

// TestTagsOfOthers: where the model takes no part, or nothing is changed, its words in the form of tags are words, and reach the
// client; where it takes part they do not.
func TestTagsOfOthers(t *testing.T) {
	for name, row := range map[string]struct {
		settings proxy.Settings
		words    bool
	}{
		"it takes part":     {proxy.Settings{}, false},
		"it takes no part":  {proxy.Settings{Alone: true}, true},
		"nothing changes":   {proxy.Settings{Treatment: proxy.Observe}, true},
		"only definitions":  {proxy.Settings{Treatment: proxy.Trim}, true},
		"episodes":          {proxy.Settings{Treatment: proxy.Episodes}, true},
		"pages, definition": {proxy.Settings{Treatment: proxy.PageTrim}, false},
	} {
		r := newRig(t, row.settings)
		e := r.exchange("", request(text("user", "q")), reply("end_turn", tagged("so", "release: a.go")))
		if got := bytes.Contains(e.got, []byte("release: a.go")); got != row.words {
			t.Errorf("%s: the client got %s", name, e.got)
		}
	}
}

// TestNotRefused: a request that went out as it came, or has an answer, is not sent again when the API refuses it.
func TestNotRefused(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	x, err := r.c.Begin(t.Context(), proxy.Ask{Body: request(text("user", "q")), Treatment: proxy.Observe})
	if err != nil || x.Refused(400) {
		t.Errorf("one that nothing was changed of: %v", err)
	}
	x.Broken(t.Context(), nil)
	x = r.begin(text("user", "q"))
	if !x.Answer(t.Context(), 200, false) || x.Refused(400) {
		t.Error("one that has an answer")
	}
	if _, err := x.Feed(reply("end_turn", textBlock("a"))); err != nil || x.Next(t.Context()) {
		t.Fatal(err)
	}
	if _, err := x.Finish(t.Context()); err != nil || logOf(r) != "q|a" {
		t.Errorf("the log has %q, %v", logOf(r), err)
	}
}

// TestBrokenSays: an answer that fails ends with an error in the form of its API, unless it has not begun, nothing failed, or the
// client has gone; why is in the record.
func TestBrokenSays(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for name, row := range map[string]struct {
		ctx   context.Context
		began bool
		err   error
		says  bool
	}{
		"it failed":           {t.Context(), true, errors.New("the line\nbroke"), true},
		"it has not begun":    {t.Context(), false, errors.New("the line\nbroke"), false},
		"nothing failed":      {t.Context(), true, nil, false},
		"the client has gone": {gone, true, errors.New("the line\nbroke"), false},
	} {
		r := newRig(t, proxy.Settings{})
		x := r.begin(text("user", "q"))
		if row.began {
			if !x.Answer(t.Context(), 200, true) {
				t.Fatal("not taken")
			}
			if _, err := x.Feed([]byte("data: {\"type\":\"ping\"}\n\n")); err != nil {
				t.Fatal(err)
			}
		}
		said := x.Broken(row.ctx, row.err)
		if bytes.Contains(said, []byte(`{"type":"error","error":{"type":"api_error","message":"the line broke"}}`)) != row.says || !row.says && said != nil || !r.c.Idle() {
			t.Errorf("%s: the client is told %q", name, said)
		}
		if len(r.records) > 0 != row.began || row.began && (r.records[0].Error != map[bool]string{true: "the line broke"}[row.err != nil] || r.records[0].Legs != 1) {
			t.Errorf("%s: recorded %+v", name, r.records)
		}
	}
}

// TestLeftAtEnd: an answer that came whole while its client left is no message of the history: the client may not have it.
func TestLeftAtEnd(t *testing.T) {
	r := newRig(t, proxy.Settings{})
	x := r.begin(text("user", "q"))
	if !x.Answer(t.Context(), 200, false) {
		t.Fatal("not taken")
	}
	if _, err := x.Feed(reply("end_turn", textBlock("a"))); err != nil {
		t.Fatal(err)
	}
	x.Broken(t.Context(), nil)
	if list := r.events("cut"); logOf(r) != "q" || len(list) != 1 || !bytes.Contains(list[0].Data, []byte(`"a"`)) || list[0].Text != "an answer that was broken off" {
		t.Errorf("the log has %q, events %+v", logOf(r), list)
	}
}

// TestWholeThoughStreamed: who asked for a stream and was answered in one piece has that, and the other way round.
func TestWholeThoughStreamed(t *testing.T) {
	stream := []byte(`data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}` + "\n\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n")
	for _, treatment := range []string{proxy.Page, proxy.Observe} {
		for _, streams := range []bool{false, true} {
			r := newRig(t, proxy.Settings{Treatment: treatment})
			raw, answer := request(text("user", "q")), stream
			if !streams {
				raw, answer = append(raw[:len(raw)-1], `,"stream":true}`...), reply("end_turn", textBlock("a"))
			}
			x, err := r.c.Begin(t.Context(), proxy.Ask{Dialect: body.Messages, Body: raw})
			if err != nil || !x.Answer(t.Context(), 200, streams) {
				t.Fatal("not taken", err)
			}
			if _, err := x.Feed(answer); err != nil || x.Next(t.Context()) {
				t.Fatal(err)
			}
			if _, err := x.Finish(t.Context()); err != nil || logOf(r) != "q|a" {
				t.Errorf("%s, a stream %t: the log has %q, %v", treatment, streams, logOf(r), err)
			}
		}
	}
}
