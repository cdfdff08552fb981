package bench

import (
	"fmt"
	"math/rand/v2"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/episodes"
)

// stage is where a simulated agent works.
type stage interface {
	// say is a message of a person.
	say(text string) error
	// call is a call of the model: what it answers, and the results of its calls, nil where it stops.
	call(reply tidemark.Message, results *tidemark.Message) error
}

// shape is how an agent works. Sizes are drawn evenly between their bounds, in tokens as this program estimates them.
type shape struct {
	tasks    int
	explores [2]int  // calls of an exploration, its marks apart
	acts     [2]int  // calls of an action, its marks apart
	fixed    bool    // calls are those of the reference's pair instead
	second   float64 // share of tasks with a second pair
}

// Sizes of what tools give, after the reference's description of its simulation: searches of 1,000 to 3,000 tokens, reads of
// 2,000 to 6,000, commands, and small results of edits.
var sizes = struct{ list, grep, read, bash, edit, again, think, say, order [2]int }{
	list: [2]int{200, 500}, grep: [2]int{1000, 3000}, read: [2]int{2000, 6000}, bash: [2]int{200, 1200}, edit: [2]int{150, 700}, again: [2]int{300, 900},
	think: [2]int{80, 400}, say: [2]int{10, 60}, order: [2]int{60, 250},
}

// worker is a simulated agent with its tasks.
type worker struct {
	shape
	seed  uint64
	on    stage
	calls int // ids of calls so far
}

// run does all tasks.
func (w *worker) run(told Told) error {
	for i := range w.tasks {
		told.tell("tasks", i, w.tasks)
		if err := w.task(i); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
	}
	return nil
}

// task is a person's order, an exploration and an action, sometimes two, and an answer.
func (w *worker) task(i int) error {
	g := w.hand(uint64(i)) //nolint:gosec // a count
	if err := w.on.say(fmt.Sprintf("Task %d. %s", i, g.text(g.among(sizes.order)))); err != nil {
		return err
	}
	pairs := 1
	if g.rng.Float64() < w.second {
		pairs = 2
	}
	for n := range pairs {
		name := fmt.Sprintf("look into %d.%d", i, n)
		if err := w.explore(name, 1+2*uint64(i)+uint64(n)); err != nil { //nolint:gosec // counts
			return err
		}
		if err := w.act(g, fmt.Sprintf("mend %d.%d", i, n), name); err != nil {
			return err
		}
	}
	if w.fixed && i < w.tasks-1 {
		return nil // the next order follows the end of the action
	}
	reply, _ := g.turn(0, g.among(sizes.say))
	return w.on.call(reply, nil)
}

// hand draws for a part of the session: what happens elsewhere does not change it.
func (w *worker) hand(stream uint64) *hand { return newHand(w.seed, stream+1<<32) }

// turn is a call of the model with some deeds; one in six thinks first.
func (w *worker) turn(g *hand, deeds ...toolDeed) error {
	think := 0
	if g.rng.IntN(6) == 0 {
		think = g.among(sizes.think)
	}
	g.calls = w.calls
	reply, results := g.turn(think, g.among(sizes.say), deeds...)
	w.calls = g.calls
	return w.on.call(reply, &results)
}

// explore looks for something.
func (w *worker) explore(name string, stream uint64) error {
	g := &hand{rng: rand.New(rand.NewPCG(w.seed, stream))} //nolint:gosec // made to be repeated
	if err := w.turn(g, startOf(name, episodes.Exploration)); err != nil {
		return err
	}
	for _, d := range w.looks(g) {
		if err := w.turn(g, d...); err != nil {
			return err
		}
	}
	if err := w.turn(g, g.read(g.among(sizes.read))); err != nil {
		return err
	}
	return w.turn(g, endOf(g.text(g.among([2]int{20, 60}))))
}

// looks are the deeds of an exploration before its last read, by turns.
func (w *worker) looks(g *hand) (turns [][]toolDeed) {
	if w.fixed { // the reference's pair has seven turns of each
		return [][]toolDeed{{g.list(g.among(sizes.list))}, {g.grep(g.among(sizes.grep))}, {g.bash(g.among(sizes.bash))}, {g.read(g.among(sizes.again))}}
	}
	for range g.among(w.explores) - 1 {
		var d []toolDeed
		switch k := g.rng.IntN(100); {
		case k < 30:
			d = append(d, g.grep(g.among(sizes.grep)))
		case k < 40:
			d = append(d, g.read(g.among(sizes.read)))
		case k < 50:
			d = append(d, g.read(g.among(sizes.again)), g.list(g.among(sizes.list)))
		case k < 65:
			d = append(d, g.list(g.among(sizes.list)))
		default:
			d = append(d, g.bash(g.among(sizes.bash)))
		}
		turns = append(turns, d)
	}
	return turns
}

// act changes something.
func (w *worker) act(g *hand, name, on string) error {
	turns := [][]toolDeed{{g.edit(g.among(sizes.edit))}, {g.bash(g.among(sizes.bash))}, {g.edit(g.among(sizes.edit))}, {g.read(g.among(sizes.again))}, {g.bash(g.among(sizes.bash))}}
	if !w.fixed {
		turns = nil
		for range g.among(w.acts) {
			var d []toolDeed
			switch k := g.rng.IntN(100); {
			case k < 40:
				d = append(d, g.edit(g.among(sizes.edit)))
			case k < 50:
				d = append(d, g.edit(g.among(sizes.edit)), g.edit(g.among(sizes.edit)))
			case k < 60:
				d = append(d, g.read(g.among(sizes.again)))
			default:
				d = append(d, g.bash(g.among(sizes.bash)))
			}
			turns = append(turns, d)
		}
	}
	if err := w.turn(g, startOf(name, episodes.Action, on)); err != nil {
		return err
	}
	for _, d := range turns {
		if err := w.turn(g, d...); err != nil {
			return err
		}
	}
	return w.turn(g, endOf(""))
}
