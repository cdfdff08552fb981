package tidemark

import "time"

// Window is how many tokens a model takes at most, its reply included, and how that is known.
type Window struct {
	Model  string     `json:"model"`  // as requests name it, behind the place of its endpoint
	Tokens Tokens     `json:"tokens"` // 0: nobody says
	From   WindowFrom `json:"from,omitempty"`
	Until  time.Time  `json:"until"` // when it is to be found out anew: a server may be started with another
}

// WindowFrom is how the window of a model is known.
type WindowFrom string

// The ways to know a window, the surest first.
const (
	WindowRefused  WindowFrom = "refusal"  // the API named it when it refused a larger request
	WindowHalved   WindowFrom = "halving"  // it refused larger requests, and names no limit
	WindowEndpoint WindowFrom = "endpoint" // the endpoint tells it of its models
	WindowTrained  WindowFrom = "trained"  // it tells what the model was trained with, and not yet what it runs with
	WindowKnown    WindowFrom = "table"    // the model's maker says so
	WindowSet      WindowFrom = "setting"  // model.contextWindow, or what the conversation has set
)

// windowTexts say it to people.
var windowTexts = map[WindowFrom]string{
	WindowRefused:  "the model's API named it when it refused a larger request",
	WindowHalved:   "found by halving: the model's API refused more and named no limit",
	WindowEndpoint: "the model's endpoint says so",
	WindowTrained:  "the model was trained with so much, and its endpoint does not say with how much it runs",
	WindowKnown:    "the model's maker says so",
	WindowSet:      "the most that is set (model.contextWindow)",
}

// String says it to people.
func (f WindowFrom) String() string { return windowTexts[f] }

// Met reports whether requests met it: no endpoint says so, and none can take it back.
func (f WindowFrom) Met() bool { return f == WindowRefused || f == WindowHalved }

// How long what is known of a window holds.
const (
	windowLearned = 24 * time.Hour
	windowAsked   = time.Hour
	windowTrained = 10 * time.Minute // once it is loaded, the endpoint may say
)

// Holds is w with the time until which it holds.
func (w Window) Holds(now time.Time) Window {
	w.Until = now.Add(windowAsked)
	switch {
	case w.From.Met():
		w.Until = now.Add(windowLearned)
	case w.From == WindowTrained:
		w.Until = now.Add(windowTrained)
	}
	return w
}

// Narrow is the window that is used of a model: at most what is set, less where told, or else its maker's figure, says less.
func Narrow(set Tokens, told Window, known Tokens) Window {
	if told.Tokens == 0 {
		told.Tokens, told.From = known, WindowKnown
	}
	if told.Tokens > 0 && told.Tokens < set {
		return told
	}
	return Window{Model: told.Model, Tokens: set, From: WindowSet, Until: told.Until}
}

// Over reports whether w, heard now, is taken instead of what was known: what a request met says more than what an
// endpoint tells, and a limit that was named more than a larger one that was found by halving. Who does not say takes back
// nothing.
func (w Window) Over(known Window, now time.Time) bool {
	switch {
	case known.Tokens == 0:
		return true
	case w.Tokens == 0:
		return false
	case now.After(known.Until):
		return true
	case known.From.Met(): // of two the later: one may have waited until the agent is there
		return w.From.Met() && !w.Until.Before(known.Until) && (w.From == WindowRefused || w.Tokens < known.Tokens)
	}
	return known.From != WindowEndpoint || w.From != WindowTrained
}
