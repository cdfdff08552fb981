package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/proxy"
	"github.com/tidemark-ai/tidemark/room/anatomy"
)

// proxySums are figures of what went through a door.
type proxySums struct {
	calls   int             // of the API: a request makes several where the model calls our tools
	in      tidemark.Tokens // read by the model in all of them, as the provider reported it
	whole   tidemark.Tokens // what the requests alone would have been with nothing left out, about
	cached  tidemark.Tokens // read from the provider's cache
	evicted int64           // results, inputs and images that left
	would   int64           // and that would have, of requests that were only watched
	faults  int64           // of what left, asked for again
}

// add takes in the record of a request. Without the proxy the API would have been called once, with what the client
// sent: as much more than the first call read as that body was longer than the one that went out.
func (s *proxySums) add(a anatomy.Record) {
	read := a.Usage.Context() - a.Usage.Output
	first, calls, left := read, 1, &s.evicted
	if x := a.Proxy; x != nil {
		calls = max(x.Legs, 1)
		if first = tidemark.Tokens(x.First); first == 0 { // of a record that does not tell it
			first = read / tidemark.Tokens(calls)
		}
		if !strings.HasPrefix(x.Treatment, "page") {
			left = &s.would
		}
	}
	s.calls += calls
	s.in += read
	s.cached += a.Usage.CacheRead
	p := a.Paging
	if p == nil || p.Sent <= 0 {
		s.whole += first
		return
	}
	s.whole += tidemark.Tokens(math.Round(float64(first) * float64(p.In) / float64(p.Sent)))
	*left += int64(p.Evicted + p.Collected + p.Inputs + p.Images)
	if left == &s.evicted {
		s.faults += int64(len(p.Faults))
	}
}

// fewTokens are too few for a share of them to say anything: what is added to each request weighs more.
const fewTokens = 20_000

// rows are the figures for people.
func (s *proxySums) rows(came seen) [][]string {
	rows := [][]string{{"requests", fmt.Sprint(came.requests)}}
	for _, r := range []struct {
		what string
		n    int
	}{{"of them to another address", came.beside}, {"other requests", came.others}, {"refused here", came.refused}} {
		if r.n > 0 {
			rows = append(rows, []string{r.what, fmt.Sprint(r.n)})
		}
	}
	for _, r := range came.reasons {
		rows = append(rows, []string{"passed on untouched", fmt.Sprintf("%d: %s", r.requests, r.why)})
	}
	if s.calls == 0 {
		return rows
	}
	share := ""
	if s.whole >= fewTokens {
		share = part(s.in, s.whole)
	}
	rows = append(rows, []string{"model calls", fmt.Sprint(s.calls)},
		[]string{"tokens in without the proxy", "about " + cli.Count(s.whole)},
		[]string{"tokens in with it", cli.Count(s.in) + share},
		[]string{"of them read from the cache", cli.Count(s.cached) + part(s.cached, s.in)})
	if s.would > 0 {
		rows = append(rows, []string{"would have left", fmt.Sprint(s.would)})
	}
	if s.would == 0 || s.evicted > 0 {
		rows = append(rows, []string{"evicted", fmt.Sprint(s.evicted)}, []string{"faults", fmt.Sprint(s.faults)})
	}
	return rows
}

// part is a share in percent, nothing of nothing.
func part(n, of tidemark.Tokens) string {
	if of <= 0 {
		return ""
	}
	const percent = 100
	return fmt.Sprintf(" (%.0f %%)", percent*float64(n)/float64(of))
}

// summaryTime bounds the reading of the figures: the client has ended, and its shell waits.
const summaryTime = 10 * time.Second

// proxySummary says on standard error what went through the door. Of a server that cannot tell any more
// only what this side saw is told.
func proxySummary(ctx context.Context, m *cli.Main, d *proxyDoor) {
	d.settle()
	came := d.noted()
	if came.requests+came.others+came.refused == 0 {
		m.Err.Line("tidemark proxy: no request came; does the client read ANTHROPIC_BASE_URL or OPENAI_BASE_URL?")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	var sums proxySums
	var look [][]string
	for _, key := range came.keys {
		calls, tracks, err := sumTracks(ctx, d, key, &sums)
		if err != nil {
			m.Err.Printf("tidemark proxy: figures of %s: %v\n", key, err)
		}
		if calls > 0 {
			look = append(look, lookAt(d, key, tracks)...)
		}
	}
	cli.PrintTable(m.Err, append(sums.rows(came), look...))
	hint(m, d, came)
}

// hint says what to do where nothing at all was treated. A count of tokens saves nothing, so it does not count.
func hint(m *cli.Main, d *proxyDoor, came seen) {
	switch {
	case came.requests == 0:
		m.Err.Line("tidemark proxy: no model request came; does the client read ANTHROPIC_BASE_URL or OPENAI_BASE_URL?")
	case came.untouched > 0 && came.untouched >= came.asked:
		m.Err.Printf("tidemark proxy: no request was treated, so nothing was saved: %s\n", proxy.Remedy(came.reasons[0].kind))
	case len(came.keys) == 0 && d.mode != proxy.Observe:
		m.Err.Line("tidemark proxy: no answer named a conversation, so nothing was kept")
	}
}

// lookAt says where what went through the door is to be seen.
func lookAt(d *proxyDoor, key string, tracks int) [][]string {
	command := "tidemark view "
	if d.named {
		command = "tidemark --server " + d.base + " view "
	}
	rows := [][]string{{"look at it", command + key}}
	if tracks > 1 {
		rows = append(rows, []string{"", fmt.Sprintf("shows the longest of %d tracks, and lists the others", tracks)})
	}
	return rows
}

// sumTracks adds the calls of a conversation: each of its tracks has records of its own.
func sumTracks(ctx context.Context, d *proxyDoor, key string, sums *proxySums) (calls, tracks int, err error) {
	list, err := tracksOf(ctx, d.client, key)
	if api := (*cli.APIError)(nil); errors.As(err, &api) && api.Status == http.StatusNotFound {
		return 0, 0, nil // the API refused all of it
	}
	for _, t := range list {
		if err != nil {
			break
		}
		var n int
		n, err = sumCalls(ctx, d, ownKey(t), sums)
		calls += n
	}
	return calls, len(list), err
}

// sumCalls adds the calls of a track that were made since the door opened.
func sumCalls(ctx context.Context, d *proxyDoor, key string, sums *proxySums) (n int, err error) {
	const page = 500
	before := int64(0)
	for {
		calls, _, err := anatomies(ctx, d.client, key, before, page)
		if err != nil {
			return n, err
		}
		for _, a := range calls {
			if a.At >= d.began.UnixMilli() {
				sums.add(a)
				n++
			}
		}
		if len(calls) < page || calls[0].At < d.began.UnixMilli() || calls[0].N <= 1 {
			return n, nil
		}
		before = calls[0].N - 1
	}
}
