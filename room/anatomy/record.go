package anatomy

import (
	"math"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/paging"
	"github.com/tidemark-ai/tidemark/room"
)

// Record says of one call of the model what its context was made of, what it cost, and what is needed to build the same
// request again (see [Room.Prompt]). The names of the first block of fields are those
// of papers/total-recall, Annex A.4. Bytes are of the text that is sent, each byte counted in one field.
// A record has under 2 KB, and all are kept.
type Record struct {
	Turn       string  `json:"turnId"` // sorts by time; the calls of a turn share it
	Session    string  `json:"sessionId"`
	Cycle      int     `json:"compactionCycle"` // compactions of the conversation before the call
	Full       float64 `json:"contextUtilPct"`  // size of the limit, in percent
	SystemText int     `json:"systemPromptBytes"`
	Workspace  int     `json:"workspaceFileBytes"` // persona, instructions and memory of the agent
	Skills     int     `json:"skillBytes"`         // always 0: the list of skills is of Workspace
	Schemas    int     `json:"toolSchemaBytes"`
	Events     int     `json:"historyEventCount"` // messages of the log that were shown, whole or in part
	Markers    int     `json:"markerCount"`
	UserBytes  int     `json:"userMessageBytes"` // of the newest message of a person
	Topic      *string `json:"topicLabel"`       // up to five words, nil when nothing tells
	Transition bool    `json:"topicTransition"`  // under half of the words were the turn's before

	N        int64              `json:"n"`
	Run      string             `json:"run"`
	Attempt  int                `json:"attempt"` // of the turn's present call, from 1
	At       int64              `json:"at"`      // Unix milliseconds, of its end
	Model    string             `json:"model"`
	Stop     string             `json:"stopReason"`      // "error" for a call that failed
	Error    string             `json:"error,omitempty"` // why it failed
	Window   tidemark.Tokens    `json:"window"`
	Limit    tidemark.Tokens    `json:"limit"`
	Size     tidemark.Tokens    `json:"size"`     // before the call, as decided on, with what was pushed
	Anchored bool               `json:"anchored"` // Size rests on a provider's report
	System   tidemark.Tokens    `json:"systemTokens"`
	Tools    tidemark.Tokens    `json:"toolTokens"`
	Parts    map[string]Portion `json:"parts"` // in the measure of Size, as are System and Tools: person, model, tool, recall, summary, marker, stub, note
	Last     int64              `json:"last"`  // position of the newest message
	Overlays []tidemark.EntryID `json:"overlays,omitempty"`
	Usage    tidemark.Usage     `json:"usage"`
	Context  tidemark.Tokens    `json:"context"` // after the call
	Paging   *paging.Account    `json:"paging,omitempty"`
	Episodes *room.Divided      `json:"episodes,omitempty"`
	Proxy    *Proxied           `json:"proxy,omitempty"` // of a call that a client made through the proxy

	// What the request is built of again, besides the log up to Until.
	Until     int64           `json:"until"`
	Requested string          `json:"requested"`
	MaxTokens tidemark.Tokens `json:"maxTokens,omitempty"`
	Prompt    string          `json:"prompt"`             // hash of the system text
	Schema    string          `json:"schema,omitempty"`   // hash of the tools
	Note      string          `json:"note,omitempty"`     // as sent, when it is short
	NoteHash  string          `json:"noteHash,omitempty"` // or its hash
	SHA256    string          `json:"sha256"`             // of the request, as WriteRequest writes it
}

// Portion is how much of a view is of one kind.
type Portion struct {
	Items  int             `json:"items"`
	Tokens tidemark.Tokens `json:"tokens"`
}

// Proxied is what the proxy did with a call of a client: a part of [Record].
type Proxied struct {
	Treatment string `json:"treatment"`           // observe, trim, page, page+trim, episodes, episodes+trim
	Untouched string `json:"untouched,omitempty"` // why it was sent as it came
	Legs      int    `json:"legs"`                // calls of the API: more than one where the model called tools of ours
	First     int64  `json:"firstTokens"`         // input of the first of them, cached or not: without the proxy there is no other
	Phantom   int    `json:"phantom"`             // such calls
	Trimmed   int    `json:"trimmedBytes"`        // what tools, skills and repeated parts were shortened by

	Episodes *episodes.Account `json:"episodes,omitempty"` // nil where none may leave
}

// Bounds of a record.
const (
	maxOverlays = 24 // that are named, the newest
	shortNote   = 256
)

// dissect tells what a request is made of.
func dissect(c room.Sent, window, limit tidemark.Tokens, base string) Record {
	v, req := c.Seen, c.Request
	a := Record{Session: v.Log, Window: window, Limit: limit, Size: v.Size, Anchored: v.Anchor,
		System: tidemark.EstimateText(req.System), Parts: Portions(v), Last: c.Last, Until: c.Until,
		Requested: req.Model, MaxTokens: req.MaxTokens, Prompt: string(tidemark.HashOf([]byte(req.System)))}
	if a.Limit > 0 {
		a.Full = math.Round(1000*float64(v.Size)/float64(a.Limit)) / 10
	}
	a.SystemText = len(req.System)
	if strings.HasPrefix(req.System, base) {
		a.SystemText, a.Workspace = len(base), len(req.System)-len(base)
	}
	if len(req.Tools) > 0 {
		schemas := room.JSON(req.Tools)
		a.Schemas, a.Tools = len(schemas), tidemark.EstimateText(schemas)
	}
	if c.Pushed { // what is pushed beside the messages, which Size has, too
		a.Parts["note"] = Portion{Items: 1, Tokens: tidemark.EstimateText(req.Note)}
	}
	a.scale()
	for _, it := range v.Items {
		switch {
		case compaction.IsMarker(it):
			a.Markers++
		case !it.Span():
			a.Events++
		}
	}
	for _, it := range slices.Backward(v.Items) {
		if it.Source == tidemark.FromPerson && !it.Span() {
			a.UserBytes = messageBytes(it.Message)
			break
		}
	}
	a.Overlays = overlaysOf(v)
	return a
}

// scale tells the parts in the measure of Size, which may be a provider's.
func (a *Record) scale() {
	all := a.System + a.Tools
	for _, p := range a.Parts {
		all += p.Tokens
	}
	a.System, a.Tools = episodes.Scaled(a.System, a.Size, all), episodes.Scaled(a.Tools, a.Size, all)
	for k, p := range a.Parts {
		a.Parts[k] = Portion{p.Items, episodes.Scaled(p.Tokens, a.Size, all)}
	}
}

// messageBytes is what a message weighs: its texts as they are, the rest as JSON.
func messageBytes(m tidemark.Message) int {
	n := 0
	for _, b := range m.Content {
		if b.Type == tidemark.TypeText {
			n += len(b.Text)
		} else {
			n += len(b.AppendJSON(nil))
		}
	}
	return n
}

// overlaysOf returns the overlays that are in effect, the newest of them.
func overlaysOf(v room.Seen) []tidemark.EntryID {
	var out []tidemark.EntryID
	seen := map[tidemark.EntryID]bool{}
	for _, sh := range v.Shown {
		if !seen[sh.Overlay] {
			seen[sh.Overlay] = true
			out = append(out, sh.Overlay)
		}
	}
	slices.Sort(out) // by time
	return out[max(0, len(out)-maxOverlays):]
}

// topic names what the turn is about. The calls of a turn share it.
func (a *Record) topic(v room.Seen, last Record) {
	if last.Run == a.Run && a.Run != "" {
		a.Topic, a.Transition = last.Topic, last.Transition
		return
	}
	words := topicWords(v)
	if len(words) == 0 {
		return
	}
	label := strings.Join(words, " ")
	a.Topic = &label
	if last.Topic == nil || last.Session != a.Session {
		return
	}
	same, former := 0, strings.Fields(*last.Topic)
	for _, w := range words {
		if slices.Contains(former, w) {
			same++
		}
	}
	a.Transition = 2*same < min(len(words), len(former))
}

// topicWords returns what the newest turns are about: what a person said last counts most, and what was
// said before fills up when that is short.
func topicWords(v room.Seen) []string {
	const turns, newest = 3, 4
	var said []tidemark.Message
	weight, left := newest, turns
	for _, it := range slices.Backward(v.Items) {
		if it.Span() || it.Source == tidemark.FromTool || it.Source == tidemark.FromRecall {
			continue
		}
		if it.Source == tidemark.FromPerson {
			for range weight {
				said = append(said, it.Message)
			}
			weight = 1
			if left--; left == 0 {
				break
			}
			continue
		}
		said = append(said, tidemark.NewText(it.Message.Role, it.Message.PlainText()))
	}
	return compaction.Topics(said...)
}

// keep returns what stores the texts that the log does not hold, each once under its hash, and notes the
// hashes. stored is the system text that is there for sure.
func (a *Record) keep(req tidemark.Request, stored string, last Record, keep func(hash, text string) tidemark.Stmt) []tidemark.Stmt {
	var stmts []tidemark.Stmt
	put := func(text, known string) string {
		hash := string(tidemark.HashOf([]byte(text)))
		if hash != known {
			stmts = append(stmts, keep(hash, text))
		}
		return hash
	}
	a.Prompt = put(req.System, stored)
	if len(req.Tools) > 0 {
		a.Schema = put(room.JSON(req.Tools), last.Schema)
	}
	if a.Note = req.Note; len(req.Note) > shortNote {
		a.Note, a.NoteHash = "", put(req.Note, last.NoteHash)
	}
	return stmts
}

// Portions sorts the items of a view by kind.
func Portions(v room.Seen) map[string]Portion {
	out := map[string]Portion{}
	for _, it := range v.Items {
		kind := it.Source
		switch {
		case compaction.IsSummary(it):
			kind = "summary"
		case compaction.IsMarker(it):
			kind = "marker"
		case it.Stubs > 0 && !compaction.Unthought(it):
			kind = "stub"
		case kind == "":
			kind = string(it.Message.Role)
		}
		p := out[kind]
		p.Items++
		p.Tokens += it.Tokens
		out[kind] = p
	}
	return out
}
