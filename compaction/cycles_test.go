package compaction_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// cycles is a view that grows and is compacted without a log: only Hold, Plan and Preview.
type cycles struct {
	v      compaction.View
	seq    int64
	pinned map[tidemark.EntryID]bool
	where  map[tidemark.EntryID]int64
}

func (c *cycles) add(m tidemark.Message) tidemark.EntryID {
	c.seq++
	id := tidemark.EntryID(fmt.Sprintf("e%06d", c.seq))
	it := compaction.Item{ID: id, From: id, To: id, Seq: c.seq, Last: c.seq, Message: m, Tokens: tidemark.Estimate(m)}
	c.v.Items = append(c.v.Items, it)
	c.v.Size += it.Tokens
	return id
}

// grow adds a turn of an agent: dialogue, parallel calls, now and then a large result or input.
func (c *cycles) grow(r *rand.Rand) (ids []tidemark.EntryID) {
	words := func(n int) string { return strings.Repeat(fmt.Sprintf("word%d ", r.IntN(50)), 1+r.IntN(n)) }
	ids = append(ids, c.add(tidemark.NewText(tidemark.User, words(30))))
	for range r.IntN(4) {
		var calls, results []tidemark.Block
		for range 1 + r.IntN(2) {
			id, size, input := fmt.Sprintf("c%d", r.Int64()), 60, words(3)
			switch r.IntN(12) {
			case 0:
				size = 1500
			case 1:
				input = words(400)
			}
			calls = append(calls, tidemark.ToolUse(id, "read", []byte(`{"path":"`+input+`"}`)))
			results = append(results, tidemark.ToolResult(id, words(size), false))
		}
		ids = append(ids, c.add(tidemark.Message{Role: tidemark.Assistant, Content: calls}))
		ids = append(ids, c.add(tidemark.Message{Role: tidemark.User, Content: results}))
	}
	return append(ids, c.add(tidemark.NewText(tidemark.Assistant, words(20))))
}

// check holds the laws of markers after n cycles.
func (c *cycles) check(t *testing.T, n int, exact bool) {
	t.Helper()
	if err := tidemark.Check(c.v.Messages()); err != nil {
		t.Fatalf("cycle %d: %v", n, err)
	}
	visible := map[int64]bool{}
	var marks []compaction.Item
	for _, it := range c.v.Items {
		if compaction.IsMarker(it) {
			marks = append(marks, it)
		} else {
			visible[it.Seq] = true
		}
	}
	if most := int(math.Log2(float64(n))) + 1; len(marks) > most {
		t.Fatalf("%d markers after %d cycles, at most %d", len(marks), n, most)
	}
	for id := range c.pinned {
		if !visible[c.where[id]] {
			t.Fatalf("cycle %d: %s is pinned and left the view", n, id)
		}
	}
	if !exact {
		return
	}
	under := map[int64]int{}
	for _, it := range marks {
		m, _ := compaction.MarkerOf(tidemark.Edit{Data: it.Data})
		count := 0
		for seq := it.Seq; seq <= it.Last; seq++ {
			if !visible[seq] {
				count++
				under[seq]++
			}
		}
		if count != m.Count {
			t.Fatalf("cycle %d: a marker says %d messages, its span hides %d", n, m.Count, count)
		}
	}
	for seq := int64(1); seq <= c.seq; seq++ {
		if !visible[seq] && under[seq] != 1 {
			t.Fatalf("cycle %d: entry %d is under %d markers", n, seq, under[seq])
		}
	}
}

// TestPointerCycles compacts random logs of agents hundreds of times: at most log2(C)+1 markers stand, each
// hides exactly what it says, what is pinned stays, and the limit is held.
func TestPointerCycles(t *testing.T) {
	most := max(fewer(300), 100)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			c := &cycles{pinned: map[tidemark.EntryID]bool{}, where: map[tidemark.EntryID]int64{}}
			b := compaction.Budget{Window: 12_000, Keep: tidemark.Tokens(1000 + r.IntN(3000))}
			p := compaction.Pointer{Tail: 1 + r.IntN(8), Headroom: tidemark.Tokens(100 + r.IntN(3000))}
			for n := 0; n < most; {
				for _, id := range c.grow(r) {
					it := c.v.Items[len(c.v.Items)-1]
					if r.IntN(200) == 0 && len(c.pinned) < 5 && it.ID == id && it.Tokens < 300 {
						c.pinned[id], c.where[id] = true, it.Seq
					}
				}
				if !b.Over(c.v) {
					continue
				}
				held := compaction.Hold(c.v, c.pinned, b)
				act, err := compaction.Plan([]compaction.Strategy{p}, held, b, false)
				if err != nil || held.Loose > 0 {
					t.Fatalf("cycle %d: %d loose, %v", n, held.Loose, err)
				}
				if c.v, err = compaction.Preview(held, act.Edits, b); err != nil {
					t.Fatal(err)
				}
				n++
				c.check(t, n, n%100 == 0)
				if act.Short != max(c.v.Size-b.Limit(), 0) {
					t.Fatalf("cycle %d: short by %d, the view is of %d in %d", n, act.Short, c.v.Size, b.Limit())
				}
			}
			if len(c.pinned) == 0 {
				t.Error("nothing was pinned")
			}
		})
	}
}

// dialogue is a view of turns of a person and answers.
func dialogue(n, words int) compaction.View {
	c := &cycles{}
	for i := range n {
		c.add(tidemark.NewText(tidemark.User, fmt.Sprintf("turn %d ", i)+strings.Repeat("ask ", words)))
		c.add(tidemark.NewText(tidemark.Assistant, strings.Repeat("tell ", words)))
	}
	return c.v
}

// TestShort: that the limit cannot be reached is a result which says what is missing.
func TestShort(t *testing.T) {
	b := compaction.Budget{Window: 4000, Keep: 1000}
	strategies := []compaction.Strategy{compaction.Pointer{}}
	tail := dialogue(1, 4000)
	after := func(tail compaction.View) compaction.View { // a turn behind small ones
		v := dialogue(10, 40)
		for i, it := range tail.Items {
			it.Seq, it.Last = int64(100+i), int64(100+i)
			it.ID = tidemark.EntryID(fmt.Sprintf("t%d", i))
			it.From, it.To = it.ID, it.ID
			v.Items = append(v.Items, it)
		}
		v.Size += tail.Size
		return v
	}
	all := dialogue(40, 40)
	for i := range all.Items {
		all.Items[i].Pinned = true
	}
	for name, tt := range map[string]struct {
		v     compaction.View
		edits bool
	}{
		"one large turn": {tail, true}, // no pointer can stand for it, and a summary can
		"all is pinned":  {all, false},
		"small turns leave with one that no model takes":         {after(tail), true},
		"small turns leave for one that a model may take, still": {after(dialogue(1, 1650)), true},
	} {
		t.Run(name, func(t *testing.T) {
			act, err := compaction.Plan(strategies, tt.v, b, false)
			if act.Short == 0 || (len(act.Edits) > 0) != tt.edits || tt.edits != (err == nil) {
				t.Fatalf("%d edits, short by %d, %v", len(act.Edits), act.Short, err)
			}
			if err != nil && !errors.Is(err, tidemark.ErrNoGain) {
				t.Fatal(err)
			}
			left, err := compaction.Preview(tt.v, act.Edits, b)
			if err != nil || left.Size-b.Limit() != act.Short {
				t.Errorf("short by %d, the view has %d of %d, %v", act.Short, left.Size, b.Limit(), err)
			}
			if again, err := compaction.Plan(strategies, left, b, false); !errors.Is(err, tidemark.ErrNoGain) {
				t.Errorf("the same view is planned again: %d edits, %v", len(again.Edits), err)
			}
		})
	}
}

// TestHold: pins have a bound by share and by count, and the oldest lose their hold; with a summary, too,
// what holds stays.
func TestHold(t *testing.T) {
	v := dialogue(200, 10)
	pins := map[tidemark.EntryID]bool{}
	for _, it := range v.Items {
		pins[it.ID] = true
	}
	b := compaction.Budget{Window: 1 << 20}
	held := compaction.Hold(v, pins, b)
	if held.Loose != 400-64 || held.Items[335].Pinned || !held.Items[336].Pinned {
		t.Errorf("%d lost their hold by count", held.Loose)
	}
	b.Window = 2000
	held = compaction.Hold(v, pins, b)
	var size tidemark.Tokens
	for _, it := range held.Items {
		if it.Pinned {
			size += it.Tokens
		}
	}
	if size > 500 || size < 400 || !held.Items[399].Pinned || held.Items[0].Pinned || v.Items[399].Pinned {
		t.Errorf("%d tokens hold, %d entries do not", size, held.Loose)
	}
	for _, strategy := range []compaction.Strategy{compaction.Pointer{Tail: 1}, compaction.Summary{}} {
		act, err := compaction.Plan([]compaction.Strategy{strategy}, held, b, false)
		if err != nil || act.Loose != held.Loose {
			t.Fatalf("%s: %d of %d loose, %v", strategy.Name(), act.Loose, held.Loose, err)
		}
		after, err := compaction.Preview(held, act.Edits, b)
		if err != nil {
			t.Fatal(err)
		}
		stays := map[tidemark.EntryID]bool{}
		for _, it := range after.Items {
			stays[it.ID] = true
		}
		for _, it := range held.Items {
			if it.Pinned && !stays[it.ID] {
				t.Errorf("%s: %s is pinned and left", strategy.Name(), it.ID)
			}
		}
	}
}

// TestHoldExchange: a pinned result keeps its call, and its words; the newest state of the task stays.
func TestHoldExchange(t *testing.T) {
	c := &cycles{}
	turn := func(tool string, size int) tidemark.EntryID {
		id := fmt.Sprintf("c%d", c.seq)
		c.add(tidemark.NewText(tidemark.User, "go on with it"))
		c.add(tidemark.Message{Role: tidemark.Assistant, Content: []tidemark.Block{tidemark.ToolUse(id, tool, []byte(`{}`))}})
		return c.add(tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.ToolResult(id, strings.Repeat("data ", size), false)}})
	}
	pinned, old, state := turn("read", 300), turn("task_state", 300), turn("task_state", 300)
	for range 40 {
		turn("read", 100)
	}
	b := compaction.Budget{Window: 4000, Keep: 500}
	v := compaction.Hold(c.v, map[tidemark.EntryID]bool{pinned: true}, b)
	act, err := compaction.Plan([]compaction.Strategy{compaction.Pointer{Tail: 2}}, v, b, false)
	if err != nil {
		t.Fatal(err)
	}
	after, err := compaction.Preview(v, act.Edits, b)
	if err != nil {
		t.Fatal(err)
	}
	words := map[tidemark.EntryID]int{}
	for _, it := range after.Items {
		if it.Span() {
			continue
		}
		for _, blk := range it.Message.Content {
			for _, x := range blk.Content {
				words[it.ID] += strings.Count(x.Text, "data ")
			}
		}
	}
	if words[pinned] != 300 || words[state] != 300 || words[old] != 0 {
		t.Errorf("of the pinned result %d words stay, of the newest state %d, of an older one %d", words[pinned], words[state], words[old])
	}
	if err := tidemark.Check(after.Messages()); err != nil {
		t.Error(err)
	}
}

// TestPointerUrged: a person, or a provider that reports an overflow, may ask for less than the limit.
func TestPointerUrged(t *testing.T) {
	v := dialogue(40, 40)
	b := compaction.Budget{Window: 100_000, Keep: 500}
	strategies := []compaction.Strategy{compaction.Pointer{Tail: 2}}
	if _, err := compaction.Plan(strategies, v, b, false); !errors.Is(err, tidemark.ErrNoGain) {
		t.Errorf("unasked: %v", err)
	}
	act, err := compaction.Plan(strategies, v, b, true)
	if err != nil {
		t.Fatal(err)
	}
	after, err := compaction.Preview(v, act.Edits, b)
	if err != nil || after.Size > v.Size*4/5+100 || after.Size < v.Size/2 {
		t.Errorf("%d of %d tokens are left, %v", after.Size, v.Size, err)
	}
}

// TestPointerRow: a log of thousands of large results makes one row that fits into a database.
func TestPointerRow(t *testing.T) {
	entries, _ := workOf(14_000, 80)
	v, err := compaction.Assemble(entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := compaction.Budget{Window: v.Size * 2 / 5, Keep: v.Size / 20}
	act, err := compaction.Plan([]compaction.Strategy{compaction.Pointer{}}, v, b, false)
	if err != nil || act.Short > 0 || len(act.Edits) == 0 {
		t.Fatalf("%d edits, short by %d, %v", len(act.Edits), act.Short, err)
	}
	raw, err := json.Marshal(act.Edits)
	if err != nil || len(raw) > 1<<20 {
		t.Errorf("%d edits are %d bytes, %v", len(act.Edits), len(raw), err)
	}
}

// TestLastResort: talk that no strategy which is set can make smaller is summarised where no model would take it.
func TestLastResort(t *testing.T) {
	b := compaction.Budget{Window: 4000, Reserve: 500, Keep: 1000}
	for _, list := range [][]compaction.Strategy{{&compaction.Paging{}}, {&compaction.Episodes{}}, {&compaction.Paging{}, &compaction.Episodes{}}} {
		act, err := compaction.Plan(list, dialogue(40, 100), b, false)
		if err != nil || act.Summarize < 0 || act.Short > 0 {
			t.Errorf("%s: %+v, %v", list[0].Name(), act, err)
		}
		if act, err := compaction.Plan(list, dialogue(40, 40), b, false); !errors.Is(err, tidemark.ErrNoGain) {
			t.Errorf("%s: what a model may take is summarised: %+v, %v", list[0].Name(), act, err)
		}
	}
}
