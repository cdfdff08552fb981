package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
	episodic "github.com/tidemark-ai/tidemark/room/episodes"
)

// someEpisodes are episodes of each kind in each state.
func someEpisodes() episodesShown {
	list := []episodic.Told{
		{Type: episodes.Unmarked, Calls: 2, Tokens: 900, Standing: 900, State: episodic.Prologue, Read: []string{"README.md"}},
		{Name: "auth flow", Type: episodes.Exploration, Calls: 14, Tokens: 18_200, State: episodic.Gone, Description: "Tokens are checked in auth.go <before> the handler & cached", Read: []string{"auth.go"}},
		{Name: "token cache", Type: episodes.Exploration, Calls: 6, Tokens: 9_100, Standing: 3_000, State: episodic.Partial, Description: "The cache has no bound"},
		{Name: "bound the cache", Type: episodes.Action, Dependencies: []string{"token cache"}, Calls: 9, Tokens: 6_000, State: episodic.Gone, Changed: []string{"cache.go", "cache_test.go"}},
		{Type: episodes.Unmarked, Calls: 3, Tokens: 700, Standing: 700, State: episodic.Whole},
		{Type: episodes.Unmarked, Calls: 1, Tokens: 200, Standing: 210, State: episodic.Whole},
		{Name: "リフレッシュ", Type: episodes.Exploration, Calls: 3, Tokens: 2_400, Standing: 2_400, State: episodic.Whole, Description: "Refresh is a second request"},
		{Name: "one check", Type: episodes.Action, Dependencies: []string{"auth flow", "リフレッシュ"}, Calls: 5, Tokens: 4_000, Standing: 4_000, State: episodic.Whole, Changed: []string{"auth.go"}},
		{Name: "mend the rest", Type: episodes.Action, Dependencies: []string{"token cache", "from before"}, Calls: 5, Tokens: 4_000, Standing: 4_000, State: episodic.Open},
	}
	return shownOf(list)
}

func shownOf(list []episodic.Told) episodesShown {
	v := episodesShown{episodic.Overview{Enabled: true, Budget: 80_000, LowWater: 60_000, Size: 72_000, Episodes: list}, map[episodic.State]int{}, len(list), 0}
	for i := range list {
		list[i].N = i + 1
		v.Counts[list[i].State]++
	}
	return v
}

// TestEpisodesText: each episode is a row, with what it depends on; work that was not marked is one row.
func TestEpisodesText(t *testing.T) {
	rows := episodeTable(someEpisodes(), 60)
	var got []string
	for _, r := range rows[1:] {
		got = append(got, strings.Join(r, "|"))
	}
	want := []string{
		"■|1|-||900/900|2||unmarked work, read README.md",
		"○|2|expl|auth flow|0/18k|14||Tokens are checked in auth.go <before> the handler & cached",
		"◐|3|expl|token cache|3k/9.1k|6||The cache has no bound",
		"○|4|act|bound the cache|0/6k|9|3|changed cache.go, cache_test.go",
		"●|5-6|-||900/900|4||2 pieces of unmarked work",
		"●|7|expl|リフレッシュ|2.4k/2.4k|3||Refresh is a second request",
		"●|8|act|one check|4k/4k|5|2 7|changed auth.go",
		"▶|9|act|mend the rest|4k/4k|5|3 from before|",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEpisodesHead: it says when nothing leaves by the strategy, and when the budget is not met.
func TestEpisodesHead(t *testing.T) {
	v := someEpisodes()
	v.Short = 2_100
	if got := strings.Join(headEpisodes(v), "\n"); !strings.Contains(got, "2.1k over it, and what may leave does so") || !strings.Contains(got, "9 episodes: ▶ 1 open, ● 4 in the context") {
		t.Error(got)
	}
	v.Held = `action "mend" is open`
	if got := headEpisodes(v)[0]; !strings.HasSuffix(got, `2.1k over it, and nothing may leave: action "mend" is open`) {
		t.Error(got)
	}
	v.Enabled, v.Budget, v.LowWater, v.Short = false, 0, 0, 0
	if got := headEpisodes(v)[0]; !strings.Contains(got, "context 72k tokens; the strategy episodes is not active") {
		t.Error(got)
	}
}

// manyEpisodes are n episodes of which all but the newest ten are out.
func manyEpisodes(n int) episodesShown {
	var list []episodic.Told
	for i := range n {
		e := episodic.Told{Name: fmt.Sprint("look ", i), Type: episodes.Exploration, Tokens: 1_000, State: episodic.Gone, Description: "seen"}
		if i%2 == 1 {
			e.Type, e.Name, e.Description, e.Dependencies = episodes.Action, fmt.Sprint("do ", i), "", []string{fmt.Sprint("look ", i-1)}
		}
		if i >= n-10 {
			e.State, e.Standing = episodic.Whole, e.Tokens
		}
		list = append(list, e)
	}
	return shownOf(list)
}

// TestEpisodesFolded: of hundreds the old ones that are out are one row; each is told, or counted, once.
func TestEpisodesFolded(t *testing.T) {
	for _, n := range []int{1, 59, 60, 61, 400, 5_000} {
		for _, kept := range []episodic.State{episodic.Gone, episodic.Whole} { // whole: nothing may be folded as out
			v := manyEpisodes(n)
			for i := range v.Episodes {
				if kept == episodic.Whole {
					v.Episodes[i].State = kept
				}
			}
			rows := episodeRows(v.Episodes, 60)
			at := 0
			for _, r := range rows {
				for _, e := range r.list {
					if at++; e.N != at {
						t.Fatalf("%d episodes: %d stands in place %d", n, e.N, at)
					}
				}
			}
			if at != n || len(rows) > 60 {
				t.Errorf("%d episodes: %d in %d rows", n, at, len(rows))
			}
		}
	}
	if got := episodeTable(manyEpisodes(400), 60)[1]; got[0] != "⋮" || got[1] != "1-380" || got[7] != "190 explorations, 190 actions" {
		t.Error(got)
	}
}

// TestEpisodesCommand: all pages are read, and --json is what the server says.
func TestEpisodesCommand(t *testing.T) {
	all := manyEpisodes(2_500)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/sessions/main/episodes" {
			http.NotFound(w, r)
			return
		}
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		before, err := strconv.Atoi(r.URL.Query().Get("before"))
		if err != nil {
			before = len(all.Episodes) + 1
		}
		v := all
		if v.Episodes = all.Episodes[:before-1]; len(v.Episodes) > limit {
			v.Episodes = v.Episodes[len(v.Episodes)-limit:]
			v.Next = v.Episodes[0].N
		}
		raw, _ := json.Marshal(v)
		_, _ = w.Write(raw)
	}))
	defer server.Close()
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{"TIDEMARK_HOME=" + t.TempDir()}}
		if code := m.Run(t.Context(), commands(), append([]string{"episodes", "main", "--server", server.URL}, args...)); code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	for args, n := range map[string]int{"--json": 1_000, "--json --all": 2_500} {
		var got episodesShown
		if err := json.Unmarshal([]byte(run(cli.ExitOK, strings.Fields(args)...)), &got); err != nil || len(got.Episodes) != n || got.Total != 2_500 || got.Budget != 80_000 {
			t.Errorf("%s: %d episodes of %d, %v", args, len(got.Episodes), got.Total, err)
		}
	}
	if out := run(cli.ExitOK); !strings.Contains(out, "2500 episodes: ") || strings.Count(out, "\n") > mostEpisodeRows {
		t.Error(out)
	}
	if out := run(cli.ExitOK, "--all"); strings.Count(out, "\n") != 2+1+2_500 {
		t.Errorf("%d lines", strings.Count(out, "\n"))
	}
}

// TestEpisodeReadBack: all pages of an episode are read, and a key that is empty is told as such before anything is asked.
func TestEpisodeReadBack(t *testing.T) {
	pages := []episodic.Text{{Episode: `action "mend"`, Text: "one\n", Next: 4}, {Episode: `action "mend"`, Text: "two\x1b[31m\n"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/v1/sessions/main/recall" || q.Get("episode") != "mend" {
			http.NotFound(w, r)
			return
		}
		page := pages[0]
		if q.Get("offset") == "4" {
			page = pages[1]
		}
		raw, _ := json.Marshal(page)
		_, _ = w.Write(raw)
	}))
	defer server.Close()
	for _, row := range []struct {
		args []string
		code int
		out  string // or of the error
	}{
		{[]string{"recall", "--episode", "mend"}, cli.ExitOK, "one\ntwo[31m\n"},
		{[]string{"recall", "--episode", "mend", "--json"}, cli.ExitOK, `"text": "one\ntwo`},
		{[]string{"recall", "--episode", "mend", "walnut"}, cli.ExitUsage, "walnut beside --episode"},
		{[]string{"recall", "--episode", "mend", "-k", "3"}, cli.ExitUsage, "--k beside --episode"},
		{[]string{"recall"}, cli.ExitUsage, "QUERY"},
		{[]string{"episodes", ""}, cli.ExitUsage, "the key is empty"},
		{[]string{"view", " "}, cli.ExitUsage, "the key is empty"},
	} {
		var out, errs bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{"TIDEMARK_HOME=" + t.TempDir()}}
		code := m.Run(t.Context(), commands(), append(row.args, "--server", server.URL))
		if got := out.String() + errs.String(); code != row.code || !strings.Contains(got, row.out) {
			t.Errorf("%q: exit code %d: %s", row.args, code, got)
		}
	}
}
