package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/session"
)

// proxySums are figures of what went through a door.
type proxySums struct {
	calls   int
	in      tidemark.Tokens // read by the model, as the provider reported it
	whole   tidemark.Tokens // the same with nothing left out, about
	cached  tidemark.Tokens // read from the provider's cache
	evicted int64           // results, inputs and images that left
	faults  int64           // of them, asked for again
}

// add takes in the record of a call. What the model would have read is as much more as the request was
// longer: both are counted in bytes of the whole body.
func (s *proxySums) add(a session.Anatomy) {
	s.calls++
	read := a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheCreation
	s.in += read
	s.cached += a.Usage.CacheRead
	p := a.Paging
	if p == nil || p.Sent <= 0 {
		s.whole += read
		return
	}
	s.whole += tidemark.Tokens(math.Round(float64(read) * float64(p.In) / float64(p.Sent)))
	s.evicted += int64(p.Evicted + p.Collected + p.Inputs + p.Images)
	s.faults += int64(len(p.Faults))
}

// rows are the figures for people.
func (s *proxySums) rows(requests int) [][]string {
	rows := [][]string{{"requests", fmt.Sprint(requests)}}
	if s.calls == 0 {
		return rows
	}
	return append(rows, []string{"model calls", fmt.Sprint(s.calls)},
		[]string{"tokens in without the proxy", "about " + count(s.whole)},
		[]string{"tokens in with it", count(s.in) + part(s.in, s.whole)},
		[]string{"of them read from the cache", count(s.cached) + part(s.cached, s.in)},
		[]string{"evicted", fmt.Sprint(s.evicted)}, []string{"faults", fmt.Sprint(s.faults)})
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
func (m *Main) proxySummary(ctx context.Context, d *proxyDoor) {
	requests, keys := d.noted()
	if requests == 0 {
		m.err.line("tidemark proxy: no request came; does the client read ANTHROPIC_BASE_URL or OPENAI_BASE_URL?")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	var sums proxySums
	for _, key := range keys {
		if err := sumTracks(ctx, d, key, &sums); err != nil {
			m.err.printf("tidemark proxy: figures of %s: %v\n", key, err)
		}
	}
	rows := sums.rows(requests)
	for _, key := range keys {
		rows = append(rows, []string{"look at it", "tidemark view " + key})
	}
	table(m.err, rows)
	if len(keys) == 0 && d.mode != "observe" {
		m.err.line("tidemark proxy: no answer named a conversation, so nothing was kept")
	}
}

// maxTracks bounds how many tracks of a conversation are added up.
const maxTracks = 1000

// sumTracks adds the calls of a conversation and of its tracks (KEY#t2, …), which have records of their own.
func sumTracks(ctx context.Context, d *proxyDoor, key string, sums *proxySums) error {
	err := sumCalls(ctx, d, key, sums)
	for n := 2; err == nil && n <= maxTracks; n++ {
		err = sumCalls(ctx, d, fmt.Sprintf("%s#t%d", key, n), sums)
	}
	if api := (*apiError)(nil); errors.As(err, &api) && api.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// sumCalls adds the calls of a conversation that were made since the door opened.
func sumCalls(ctx context.Context, d *proxyDoor, key string, sums *proxySums) error {
	const page = 500
	before := int64(0)
	for {
		calls, _, err := anatomies(ctx, d.client, key, before, page)
		if err != nil {
			return err
		}
		for _, a := range calls {
			if a.At >= d.began.UnixMilli() {
				sums.add(a)
			}
		}
		if len(calls) < page || calls[0].At < d.began.UnixMilli() || calls[0].N <= 1 {
			return nil
		}
		before = calls[0].N - 1
	}
}
