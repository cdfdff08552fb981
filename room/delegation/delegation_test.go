package delegation

import (
	"context"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/room"
)

// nobody is children that are not asked.
type nobody struct{ Children }

// of makes the room of a conversation in which nothing is set.
func of(key tidemark.Key, l tidemark.Limits, c Config) *Room {
	r, ok := Make(c)(room.Ports{Self: room.Self{Key: key}, Allowance: room.Allowance{Limits: func() tidemark.Limits { return l },
		Offered: func(context.Context) ([]tidemark.Tool, error) { return nil, nil }}}).(*Room)
	if !ok {
		panic("Make makes no Room")
	}
	return r
}

// TestTokens: what delegation adds to each prompt is small, in the parent and in the child.
func TestTokens(t *testing.T) {
	tool := of("agent:main:main", tidemark.Limits{}, Config{Children: nobody{}}).Tools(true)[0]
	raw, err := json.Marshal(tool)
	if err != nil || !json.Valid(tool.InputSchema) {
		t.Fatal(err, string(tool.InputSchema))
	}
	if n := tidemark.EstimateText(string(raw)); n >= 150 {
		t.Errorf("the tool takes %d tokens", n)
	} else {
		t.Logf("the tool takes %d tokens, its schema %d", n, tidemark.EstimateText(string(tool.InputSchema)))
	}
	if n := tidemark.EstimateText(childSystem); n >= 80 {
		t.Errorf("the system text of a child takes %d tokens", n)
	} else {
		t.Logf("the system text of a child takes %d tokens", n)
	}
}

// TestOffered: the tool is there in the owner's conversations that are not too deep, and only a child is told that it is one.
func TestOffered(t *testing.T) {
	const child = "agent:main:delegate:dm:a"
	deep := tidemark.Limits{Depth: 2}
	for name, row := range map[string]struct {
		key      tidemark.Key
		l        tidemark.Limits
		c        Config
		offered  bool
		fromHere int // of a child's child, how deep it is
	}{
		"the owner":           {"agent:main:main", tidemark.Limits{}, Config{Children: nobody{}}, true, 1},
		"nobody to ask":       {"agent:main:main", tidemark.Limits{}, Config{}, false, 1},
		"off":                 {"agent:main:main", tidemark.Limits{}, Config{Children: nobody{}, Off: true}, false, 1},
		"a peer":              {"agent:main:whatsapp:dm:4917", tidemark.Limits{}, Config{Children: nobody{}}, false, 1},
		"a child":             {child, tidemark.Limits{Depth: 1}, Config{Children: nobody{}}, false, 2},
		"a child, not told":   {child, tidemark.Limits{}, Config{Children: nobody{}}, false, 2},
		"a child, of two":     {child, tidemark.Limits{Depth: 1}, Config{Children: nobody{}, MaxDepth: 2}, true, 2},
		"the third of three":  {child, deep, Config{Children: nobody{}, MaxDepth: 3}, true, 3},
		"no more than a few":  {child, tidemark.Limits{Depth: 3}, Config{Children: nobody{}, MaxDepth: 9}, false, 4},
		"a schedule, at most": {"agent:main:schedule:dm:a", tidemark.Limits{}, Config{Children: nobody{}}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := of(row.key, row.l, row.c)
			if got := len(r.Tools(false)) == 1; got != row.offered {
				t.Errorf("offered: %v", got)
			}
			if told := r.Brief() != ""; told != (row.key == child) {
				t.Errorf("told that it is a child: %v", told)
			}
			if l, err := r.limitsOf(t.Context(), nil, 0); err != nil || l.Depth != row.fromHere || l.Budget != DefaultBudget {
				t.Errorf("limits of a child %+v, %v", l, err)
			}
		})
	}
}

// TestShare: of what a turn has left a quarter stays with it, and calls of one round that begin at once have equal parts.
func TestShare(t *testing.T) {
	for name, row := range map[string]struct {
		a            room.Account
		budget, most tidemark.Tokens
		part, left   tidemark.Tokens
	}{
		"the only one":          {room.Account{Open: 1, Turn: 1000}, 41_000, 100_000, 30_000, 40_000},
		"one of four":           {room.Account{Open: 4, Turn: 1000}, 41_000, 100_000, 7_500, 40_000},
		"the next of them":      {room.Account{Open: 3, Round: 7_500, Turn: 8_500}, 41_000, 100_000, 7_500, 32_500},
		"the last of them":      {room.Account{Open: 1, Round: 22_500, Turn: 23_500}, 41_000, 100_000, 7_500, 17_500},
		"one that wants less":   {room.Account{Open: 4, Turn: 1000}, 41_000, 2_500, 2_500, 40_000},
		"none is said to wait":  {room.Account{Turn: 1000}, 41_000, 100_000, 30_000, 40_000},
		"earlier rounds":        {room.Account{Open: 1, Turn: 21_000}, 41_000, 100_000, 15_000, 20_000},
		"nothing is left":       {room.Account{Open: 1, Turn: 41_000}, 41_000, 100_000, 0, 0},
		"more than all is gone": {room.Account{Open: 1, Round: 1_000, Turn: 43_000}, 41_000, 100_000, -1_750, -2_000},
	} {
		t.Run(name, func(t *testing.T) {
			if part, left := share(row.a, row.budget, row.most); part != row.part || left != row.left {
				t.Errorf("part %d of %d, want %d of %d", part, left, row.part, row.left)
			}
		})
	}
}

// TestSentence: an error of a child stands in a sentence of ours.
func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"no": "no.", " No. ": "No.", "": "."} {
		if got := sentence(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
