//go:build !js

package fault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// TestWorkerBucketDown: while R2 refuses puts, turns go on, compaction and reset are put off and say so,
// and nothing leaves the view, in this life of the Worker and the next; when R2 takes puts again, what
// was put off is done.
func TestWorkerBucketDown(t *testing.T) {
	if !asked(t) {
		t.Skip("make soak")
	}
	t.Parallel()
	const all = "/fail?puts=1000000"
	var ids atomic.Int64
	f := newWorker(t, newModel(t, &ids, 0).URL, tight())
	s := f.serve()
	at := &address{}
	at.set(s.url)
	k := newTalker(t, at, "main")
	k.say("first")
	s.tell(all)
	f.withoutBucket(s, k)
	s.kill()
	s = f.serve()
	at.set(s.url)
	s.tell(all)
	f.withoutBucket(s, k)
	if n := len(f.view(s)); n < 2*24 { // two times twelve messages, and their answers
		t.Errorf("without a bucket the view has %d messages: some have left it", n)
	}
	s.tell("/fail?puts=0")
	f.bucketBack(s, k)
}

// view is what the model would see now of the main session.
func (f *fixture) view(s *server) []tidemark.Message {
	f.t.Helper()
	var view []tidemark.Message
	if err := get(f.t.Context(), s.url, "/v1/sessions/main/view?messages=1", &view); err != nil {
		f.t.Fatal(err)
	}
	return view
}

// hanging is a model that never answers the first call and then does.
func hanging(t *testing.T) *tidemarktest.API {
	t.Helper()
	m := tidemarktest.NewAPI(t)
	m.Push(tidemarktest.Step{Text: "This is never said to its end.", Stall: 700})
	m.Respond(func(tidemarktest.APICall) tidemarktest.Step { return tidemarktest.Step{Text: "The answer."} })
	return m
}

// TestWorkerModelHangsClientLeaves: the client of a stream leaves while the model hangs in the middle of
// its answer. The call times out, its connection is closed, and the input is answered once.
func TestWorkerModelHangsClientLeaves(t *testing.T) {
	if !asked(t) {
		t.Skip("make soak")
	}
	t.Parallel()
	m := hanging(t)
	f := newWorker(t, m.URL, map[string]any{"timeouts": map[string]any{"llmMs": 2000}})
	s := f.serve()
	at := &address{}
	at.set(s.url)
	k := newTalker(t, at, "main")
	if !k.leaves(input{id: "only", text: "say something"}) {
		t.Fatal("there was no receipt")
	}
	if n := m.Open(); n != 1 {
		t.Errorf("%d calls of the model are open, want one that hangs", n)
	}
	f.quiet(s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Idle(ctx); err != nil {
		t.Errorf("the connection to the model stays open: %v", err)
	}
	f.answered(s, k, "The answer.", 1)
}

// leaves opens a stream, reads up to the first piece of the answer and cuts the connection.
func (k *talker) leaves(in input) (durable bool) {
	k.t.Helper()
	ctx, cut := context.WithCancel(k.t.Context())
	defer cut()
	body := fmt.Sprintf(`{"id":%q,"text":%q}`, in.id, in.text)
	resp, err := events(ctx, http.MethodPost, k.at.get()+"/v1/sessions/"+k.key+"/messages?stream=1", body)
	if err != nil {
		k.t.Error(err)
		return false
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch lines.Text() {
		case "event: receipt":
			durable = true
			k.sent, k.acknowledged = append(k.sent, in.id), append(k.acknowledged, in.id)
		case "event: text":
			return durable
		}
	}
	return durable
}

// events opens a stream of the API.
func events(ctx context.Context, method, url, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultClient.Do(req)
}

// answered holds that the main session has so many answers, each to an input of its own, and stops the
// server.
func (f *fixture) answered(s *server, k *talker, text string, n int) {
	f.t.Helper()
	f.settled(s, "main")
	var answers []string
	for _, m := range f.view(s) {
		if m.Role == tidemark.Assistant {
			answers = append(answers, m.PlainText())
		}
	}
	if len(answers) != n || slices.ContainsFunc(answers, func(a string) bool { return a != text }) {
		f.t.Errorf("the answers are %q, want %d times %q", answers, n, text)
	}
	s.stop()
	e := inspect(f.t, f)
	e.account([]*talker{k}, 0)
	if len(e.failures) > 0 {
		f.t.Errorf("failures %q", e.failures)
	}
}

// TestWorkerAlarmTwice: a run that a kill cut off is taken up by one of several alarms at once, and by
// those alone.
func TestWorkerAlarmTwice(t *testing.T) {
	t.Parallel()
	m := hanging(t)
	f := newWorker(t, m.URL, nil)
	s := f.serve()
	at := &address{}
	at.set(s.url)
	k := newTalker(t, at, "main")
	if !k.leaves(input{id: "only", text: "say something"}) {
		t.Fatal("there was no receipt")
	}
	s.kill()
	s = f.serve() // the alarm of the run is due in a minute
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { s.tell("/alarm?object=session&name=agent:main:main&times=3") })
		wg.Go(func() { s.tell("/alarm?object=agent&name=main&times=3") })
	}
	wg.Wait()
	f.quiet(s)
	if n := len(m.Calls()); n != 2 {
		t.Errorf("the model was called %d times, want once before the kill and once behind it", n)
	}
	f.answered(s, k, "The answer.", 1)
}

// TestWorkerTwoTabs: two tabs watch one session; both send the same input, and each one of its own, at
// once. Each input is answered once, and both tabs see the same answers in the same order.
func TestWorkerTwoTabs(t *testing.T) {
	if !asked(t) {
		t.Skip("make soak")
	}
	t.Parallel()
	var ids atomic.Int64
	f := newWorker(t, newModel(t, &ids, time.Millisecond).URL, nil)
	s := f.serve()
	at := &address{}
	at.set(s.url)
	newTalker(t, at, "main").say("begin")
	const inputs = 3 // behind the first: one that both send, one of each
	var seen [2][]string
	var ready, wg sync.WaitGroup
	ready.Add(len(seen))
	for i := range seen {
		wg.Go(func() { seen[i] = watch(t, s.url, inputs, ready.Done) })
	}
	ready.Wait()
	tabs := []*talker{newTalker(t, at, "main"), newTalker(t, at, "main")}
	same := make([]string, len(tabs))
	for i, k := range tabs {
		wg.Go(func() { same[i] = k.say("same") })
		wg.Go(func() { k.say(fmt.Sprint("own-", i)) })
	}
	wg.Wait()
	if same[0] != same[1] || !strings.HasPrefix(same[0], "Answer ") {
		t.Errorf("the same input is answered with %q and %q", same[0], same[1])
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("one tab has seen %q, the other %q", seen[0], seen[1])
	}
	f.settled(s, "main")
	s.stop()
	e := inspect(t, f)
	got := e.inputs["agent:main:main"]
	if n := count(got); len(n) != inputs+1 || len(got) != inputs+1 {
		t.Errorf("the log has the inputs %q", got)
	}
}

// watch follows the notices of the main session until so many inputs were taken and nothing is said any
// more, and returns the replies that came.
func watch(t *testing.T, base string, inputs int, ready func()) []string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := events(ctx, http.MethodGet, base+"/v1/sessions/main/events", "")
	if err != nil {
		ready()
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	ready()
	var replies []string
	taken := map[string]bool{}
	answered := 0
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var n struct {
			Type, Entry string
			Inputs      []string
		}
		if err := json.Unmarshal([]byte(data), &n); err != nil {
			t.Errorf("notice %s: %v", data, err)
		}
		switch n.Type {
		case "start", "taken":
			for _, id := range n.Inputs {
				taken[id] = true
			}
		case "reply":
			replies = append(replies, n.Entry)
			answered = len(taken)
		}
		if answered == inputs {
			return replies
		}
	}
	if err := lines.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("the notices ended after %d of %d inputs: %v", len(taken), inputs, err)
	}
	return replies
}
