//go:build !js

package worker_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/worker"
)

// TestRecallWide: who finds what over HTTP, and what is refused. Every conversation says a word of its own
// beside one that all say; what an asker may not find is in no part of the answer.
func TestRecallWide(t *testing.T) {
	const token = "s3cret"
	s := serve(t, func(c *worker.Config, _ *actors) { c.Token = token })
	bearer := []string{"Authorization", "Bearer " + token}
	words := map[tidemark.Key]string{
		"agent:main:main": "quetzal", "agent:main:local:dm:garden": "walnut", "agent:main:whatsapp:dm:+491": "heron",
		"agent:main:whatsapp:dm:+492": "osprey", "agent:main:user:dm:u1": "kestrel", "agent:work:main": "magpie",
	}
	for key, word := range words {
		s.text(200, "POST", "/v1/sessions/"+url.PathEscape(string(key))+"/messages", `{"text":"the shared `+word+` sits there"}`, bearer...)
	}
	s.settle()
	const mine = "agent=main"
	for _, row := range []struct{ name, query, want string }{ // the words that are found
		{"the owner", "q=shared&k=50&" + mine, "heron kestrel osprey quetzal walnut"},
		{"the owner, by default", "q=shared&k=50", "heron kestrel osprey quetzal walnut"},
		{"another agent", "q=shared&agent=work", "magpie"},
		{"the owner in one session", "q=shared&session=garden&scope=session", "walnut"},
		{"the owner from one session", "q=shared&k=50&session=garden", "heron kestrel osprey quetzal walnut"},
		{"the owner for a peer", "q=shared&scope=peer&peer=whatsapp:%2B491", "heron"},
		{"a peer", "q=shared&session=agent:main:whatsapp:dm:%2B491", "heron"},
		{"a peer for the owner's word", "q=quetzal&session=agent:main:whatsapp:dm:%2B491", ""},
		{"a peer for another", "q=shared&session=agent:main:whatsapp:dm:%2B491&scope=peer&peer=whatsapp:%2B492", ""},
		{"a user of the API", "q=shared&session=agent:main:user:dm:u1&scope=agent", "kestrel"},
		{"a budget", "q=shared&k=50&budget=1", ""},
		{"a budget for all", "q=shared&k=50&budget=4000", "heron kestrel osprey quetzal walnut"},
		{"since a day to come", "q=shared&k=50&since=2099-01-01", ""},
		{"until a day gone", "q=shared&k=50&until=2001-01-01", ""},
		{"between days", "q=shared&k=50&since=2001-01-01&until=2099-01-01", "heron kestrel osprey quetzal walnut"},
		{"one session since a day to come", "q=shared&session=garden&scope=session&since=2099-01-01", ""},
		{"one session, all of it", "q=shared&session=garden&scope=session&all=true", "walnut"},
	} {
		t.Run(row.name, func(t *testing.T) {
			raw := s.text(200, "GET", "/v1/recall?"+row.query, "", bearer...)
			var got []string
			for _, word := range words {
				if strings.Contains(raw, word+" sits") {
					got = append(got, word)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != row.want {
				t.Errorf("found %q, want %q: %s", got, row.want, raw)
			}
			asker, err := url.ParseQuery(row.query)
			if err != nil {
				t.Fatal(err)
			}
			for key := range words { // of conversations of others not even the name
				if own := asker.Get("session"); strings.HasPrefix(own, "agent:main:") && own != string(key) && strings.Contains(raw, `"`+string(key)+`"`) {
					t.Errorf("the answer names %s: %s", key, raw)
				}
			}
		})
	}
	found := get[recall.Answer](s, 200, "GET", "/v1/recall?q=quetzal&session=agent:main:whatsapp:dm:%2B491", "", bearer...)
	alone := get[recall.Answer](s, 200, "GET", "/v1/recall?q=neverspoken&session=agent:main:whatsapp:dm:%2B491", "", bearer...)
	if found.Considered != alone.Considered || len(found.Asked) != len(alone.Asked) || found.Verdict != alone.Verdict {
		t.Errorf("a peer can tell that the owner said it: %+v and %+v", found, alone)
	}
	s.text(401, "GET", "/v1/recall?q=shared", "")
	s.text(401, "GET", "/v1/recall?q=shared", "", "Authorization", "Bearer agent:main:main")
}

// TestRecallRoutes: a recall of one session is the same by both routes, also within a budget.
func TestRecallRoutes(t *testing.T) {
	s := serve(t, func(*worker.Config, *actors) {})
	for _, text := range []string{"the harbour light is green", "the harbour light is green", "the harbour light is green", "a light burns in the attic", "all is dark"} {
		s.text(200, "POST", "/v1/sessions/main/messages", `{"text":"`+text+`"}`)
	}
	s.settle()
	type answer struct {
		Results []struct {
			ID         string
			Normalized float64
		}
		Verdict recall.Verdict
	}
	for _, budget := range []string{"", "&budget=40", "&budget=4000"} {
		one := get[answer](s, 200, "GET", "/v1/sessions/main/recall?q=harbour+light"+budget, "")
		other := get[answer](s, 200, "GET", "/v1/recall?scope=session&session=main&q=harbour+light"+budget, "")
		if len(one.Results) == 0 || !slices.Equal(one.Results, other.Results) || one.Verdict != other.Verdict {
			t.Errorf("%q: %+v and %+v", budget, one, other)
		}
	}
}

// TestRecallWideRefused: what is asked in vain says why.
func TestRecallWideRefused(t *testing.T) {
	s := serve(t, func(*worker.Config, *actors) {})
	s.text(200, "POST", "/v1/sessions/main/messages", `{"text":"the shared quetzal sits there"}`)
	s.settle()
	for name, row := range map[string]struct {
		status int
		query  string
	}{
		"no query":                 {400, ""},
		"a scope that is none":     {400, "q=x&scope=all"},
		"a session without a key":  {400, "q=x&scope=session"},
		"a peer without a name":    {400, "q=x&scope=peer"},
		"two agents":               {400, "q=x&agent=work&session=agent:main:main"},
		"no key":                   {400, "q=x&session=a%20b"},
		"a day that is none":       {400, "q=x&since=yesterday"},
		"until no day":             {400, "q=x&until=soon"},
		"k":                        {400, "q=x&k=0"},
		"a session that is none":   {404, "q=x&session=nobody"},
		"a branch that is none":    {404, "q=x&session=agent:main:user:dm:u2"},
		"days turned round":        {400, "q=x&since=2026-05-02&until=2026-05-01"},
		"a peer without its scope": {400, "q=x&peer=whatsapp:%2B491"},
		"no budget":                {400, "q=x&budget=-1"},
		"no such session":          {404, "q=x&scope=session&session=nobody"},
	} {
		t.Run(name, func(t *testing.T) { s.text(row.status, "GET", "/v1/recall?"+row.query, "") })
	}
}

// TestRecallOfTheNew: who asks from a conversation that is not in the directory yet is answered.
func TestRecallOfTheNew(t *testing.T) {
	s := serve(t, nil)
	s.text(200, "POST", "/v1/sessions/garden/messages", `{"text":"the walnut sits there"}`)
	s.settle()
	if err := s.actors.db.Tx(t.Context(), []tidemark.Stmt{{SQL: `DELETE FROM agent_sessions WHERE agent = 'main'`}}); err != nil {
		t.Fatal(err)
	}
	s.text(200, "GET", "/v1/recall?q=walnut&session=garden", "")
	s.text(404, "GET", "/v1/recall?q=walnut&session=nobody", "")
}
