package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/recall"
)

const talk = `{"speaker_a":"Ann","speaker_b":"Bob",
"session_1_date_time":"1:56 pm on 8 May, 2023",
"session_1":[{"speaker":"Ann","dia_id":"D1:1","text":"Did you ever get a pet?"},{"speaker":"Bob","dia_id":"D1:2","text":"Yes, a parrot called Kiwi."},{"speaker":"Ann","dia_id":"D1:3","text":"How lovely!"}],
"session_2_date_time":"9:00 am on 2 June, 2023",
"session_2":[{"speaker":"Bob","dia_id":"D2:1","text":"We moved to Lisbon last week."},{"speaker":"Ann","dia_id":"D2:2","text":"Congratulations."}],
"qa":[{"question":"What is the name of Bob's parrot?","answer":"Kiwi","evidence":["D1:2"],"category":4},
{"question":"When did Bob move to Lisbon?","evidence":["D:2:01; D9:9"],"category":2},
{"question":"Nobody knows","evidence":["D7:7"],"category":1}]}`

func TestLocomo(t *testing.T) {
	c, err := ReadLocomo("/data/7.json", []byte(talk))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "7" || len(c.Turns) != 5 || len(c.Questions) != 2 || c.Questions[1].Evidence[0] != "D2:1" {
		t.Fatalf("read %+v", c)
	}
	got, rankings, err := RunLocomo(t.Context(), []Conversation{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Questions != 2 || got.Recall["5"] != 1 || got.WithinTokens["1000"] != 1 || got.ByCategory["temporal"]["10"] != 1 {
		t.Errorf("measured %+v", got)
	}
	if r := got.ByFile["7"]; r["questions"] != 2 || r["5"] != 1 || r["within_4000"] != 1 {
		t.Errorf("by conversation %+v", got.ByFile)
	}
	if len(rankings[0].Ranked) != 5 { // all turns of a short one
		t.Errorf("%d of 5 turns are ranked", len(rankings[0].Ranked))
	}
	if len(rankings) != 2 || rankings[0].Ranked[0] != "D1:2" || rankings[1].Ranked[0] != "D2:1" || rankings[1].Question != 1 {
		t.Errorf("ranked %+v", rankings)
	}
}

func TestLocomoRefused(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"no JSON", "{", "LoCoMo"}, {"another file", `{"a":1}`, "session_1"},
		{"no date", `{"session_1":[]}`, "date_time"},
		{"a turn without an id", strings.Replace(talk, `"dia_id":"D1:2",`, "", 1), "x.json: session_1: turn 2 of 3 has no dia_id"},
		{"a turn without a speaker", strings.Replace(talk, `{"speaker":"Bob","dia_id":"D2:1"`, `{"dia_id":"D2:1"`, 1), "session_2: turn 1 of 2 has no speaker"},
		{"turns that are none", strings.Replace(talk, `"text":"How lovely!"`, `"text":7`, 1), "session_1: want a list of turns"},
		{"no questions", strings.Replace(talk, `"qa":`, `"qb":`, 1), "qa is missing"},
		{"questions that are none", strings.Replace(talk, `"category":4`, `"category":"x"`, 1), "x.json: qa"},
		{"no question", strings.Replace(talk, `"question":"Nobody knows"`, `"question":""`, 1), "qa[2]: question"},
		{"a date of another kind", strings.Replace(talk, "1:56 pm on 8 May, 2023", "yesterday", 1), "session_1: date_time"},
	} {
		_, err := ReadLocomo("x.json", []byte(row.text))
		if !errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func FuzzReadLocomo(f *testing.F) {
	f.Add([]byte(talk))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ReadLocomo("x.json", raw)
		if err == nil && len(c.Questions) < 50 && len(c.Turns) < 50 {
			if _, _, err := RunLocomo(t.Context(), []Conversation{c}, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// guesses is an endpoint whose vectors know nothing, or only letters.
type guesses struct{ letters bool }

func (guesses) Name() string { return "guesses" }

func (g guesses) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 64)
		sum := fnv.New64a()
		if _, err := io.WriteString(sum, text); err != nil {
			return nil, err
		}
		rng := rand.New(rand.NewPCG(sum.Sum64(), 1))
		for d := range out[i] {
			out[i][d] = float32(rng.NormFloat64())
		}
		for at := 0; g.letters && at+3 <= len(text); at++ {
			out[i][(int(text[at])*31+int(text[at+1])*7+int(text[at+2]))%64] += 8
		}
	}
	return out, nil
}

// TestLocomoVectors: vectors that know nothing take nothing away.
func TestLocomoVectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	c := Conversation{Name: "made"}
	words := strings.Fields("harbour tide lamp rope anchor gull storm pier sail deck crew chart wind wave shore net crab mast keel bell")
	pick := func(n int) string {
		var w []string
		for range n {
			w = append(w, words[rng.IntN(len(words))])
		}
		return strings.Join(w, " ")
	}
	for i := range 400 {
		c.Turns = append(c.Turns, recall.Doc{ID: fmt.Sprintf("D%d:%d", 1+i/20, i%20), Pos: int64(i), Group: int64(i / 20), Speaker: []string{"Ann", "Bob"}[i%2], Text: fmt.Sprintf("The %s of number%d is %s.", pick(2), i, pick(5))})
		if i%4 == 0 {
			c.Questions = append(c.Questions, Question{N: i, Text: fmt.Sprintf("What is the %s of number%d?", words[i%20], i), Category: 4, Evidence: []string{c.Turns[i].ID}})
		}
	}
	words0, _, err := RunLocomo(t.Context(), []Conversation{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []guesses{{}, {letters: true}} {
		got, _, err := RunLocomo(t.Context(), []Conversation{c}, by)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range words0.Recall {
			if got.Recall[k] < v {
				t.Errorf("letters %v: %s: %.3f with vectors, %.3f without", by.letters, k, got.Recall[k], v)
			}
		}
	}
}

// TestLocomoSessions: what is reported went through a session, and the rules stand beside.
func TestLocomoSessions(t *testing.T) {
	c, err := ReadLocomo("/data/7.json", []byte(talk))
	if err != nil {
		t.Fatal(err)
	}
	got, rankings, err := RunLocomoSessions(t.Context(), []Conversation{c}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got.Questions != 2 || got.Recall["5"] != 1 || got.WithinTokens["1000"] != 1 || got.ImportMs == 0 || got.Rules == nil || got.Rules.Recall["5"] != 1 || got.Rules.Rules != nil {
		t.Errorf("measured %+v", got)
	}
	if len(rankings) != 2 || len(rankings[0].Ranked) != 5 || rankings[0].Ranked[0] != "D1:2" || rankings[1].Ranked[0] != "D2:1" || rankings[1].Question != 1 {
		t.Errorf("ranked %+v", rankings)
	}
}

// TestLocomoFloors holds what recall is to reach on real conversations, through sessions and by the rules alone:
// TIDEMARK_LOCOMO=folder. They were .796/.859/.909 and .957 within 4,000 tokens when this was written.
func TestLocomoFloors(t *testing.T) {
	folder := os.Getenv("TIDEMARK_LOCOMO")
	if folder == "" {
		t.Skip("TIDEMARK_LOCOMO names no folder")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var list []Conversation
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ReadLocomo(file, raw)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	got, _, err := RunLocomoSessions(t.Context(), list, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Locomo{"sessions": got, "rules": *got.Rules} {
		for k, floor := range map[string]float64{"5": 0.79, "10": 0.85, "25": 0.9} {
			if l.Recall[k] < floor {
				t.Errorf("%s: %.3f among the first %s, want %.2f", name, l.Recall[k], k, floor)
			}
		}
		if l.WithinTokens["4000"] < 0.95 {
			t.Errorf("%s: %.3f within 4,000 tokens, want .95", name, l.WithinTokens["4000"])
		}
	}
}
