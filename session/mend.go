package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
)

// Bounds of mending.
const (
	maxMends   = 8   // places in one turn, each of them once: some pictures and tools of a server may be refused together
	maxRefusal = 200 // bytes of what the API said
)

// mendedMark begins what stands in the place of a refused block, so that it is known as such: what is refused in spite of
// it is not mended again.
const mendedMark = "[Refused by the model's API: "

// mend takes out of the request what the model API named when it refused it: a block reads as a note from now on, a tool
// is offered no more. It reports whether the call may be made again. The providers make valid what is known to be refused;
// this is for what nobody has thought of, so that no message makes every later turn fail. The log keeps the originals, and
// the overlay can be lifted.
func (s *Session) mend(ctx context.Context, r *run, v View, refused error) (bool, error) {
	var api *tidemark.APIError
	if !errors.As(refused, &api) || api.Class != tidemark.ClassBadRequest || r.mends >= maxMends {
		return false, nil
	}
	if api.Place != nil && api.Place.Tool != "" {
		return s.mendTool(ctx, r, v, *api)
	}
	edits := mendEdits(v, *api)
	return len(edits) > 0, s.takeOut(ctx, r, *api, edits)
}

// guess takes out of the request what no model has answered, where an API refuses what is said in it (a filter of content,
// a refusal without a word), names a wrong place or gives no reason that is known: what earlier turns left, then what tools
// answered in this one. What a person says in this one stays: they read the API's words, and the next turn goes on without it.
func (s *Session) guess(ctx context.Context, r *run, v View, refused error) (bool, error) {
	var api *tidemark.APIError
	if !errors.As(refused, &api) {
		return false, refused
	}
	if !ofWhatIsSaid(*api) || r.mends >= maxMends {
		return false, refused
	}
	from, err := s.turnFrom(ctx, r)
	if err != nil {
		return false, err
	}
	answered := answeredIn(v.Items)
	edits := firstEdits(v.Items, -1, *api, leftBefore(v.Items, from),
		func(i int, b tidemark.Block) bool { return i > answered && answers(b) })
	if len(edits) == 0 {
		return false, refused
	}
	var back []tidemark.Stmt
	if wrong := r.misplaced(*api); len(wrong) > 0 {
		if _, back, err = s.overlayStmts(r.Log, tidemark.FromSystem, liftOf(wrong)); err != nil {
			return false, err
		}
	}
	guessed := *api
	guessed.Place = nil
	return true, s.takeOut(ctx, r, guessed, edits, back...)
}

// nowhere is a place that is not in the request.
var nowhere = tidemark.Place{Message: -1, Block: -1, Inner: -1}

// ofWhatIsSaid reports that a refusal may be for what is said: a filter says so; other words are for nothing else that is known,
// and name no place, or a wrong one: nothing is there, or not what is refused, since some count messages otherwise.
func ofWhatIsSaid(api tidemark.APIError) bool {
	switch {
	case api.Class == tidemark.ClassRefusal, api.Place != nil && *api.Place == nowhere:
		return true
	case api.Class != tidemark.ClassBadRequest || notFound(api) || ofParameter(api) || speaksOf(api, otherWords[:]...):
		return false
	case api.Place != nil:
		return api.Place.Tool == ""
	}
	return ofMessages(api.Param)
}

// ofMessages reports that the field of a request that was refused is what is said in it, or a place in that, or none was named:
// a place that is not there may be one of those.
func ofMessages(param string) bool {
	field := strings.FieldsFunc(param, func(r rune) bool { return r == '.' || r == '[' })
	return len(field) == 0 || len(field) > 1 && field[0] == "tools" || slices.Contains([]string{"messages", "input", "prompt", "system"}, field[0])
}

// notFound reports a refusal that is for the model, or the address, whatever that is called.
func notFound(api tidemark.APIError) bool {
	return api.Status == http.StatusNotFound && api.Param == ""
}

// reconsider calls a second time where a model declined in words, and had done so the time before: it may go on declining
// whatever is said, until it no longer sees what it declined (https://docs.anthropic.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals).
func (s *Session) reconsider(ctx context.Context, r *run, v View, c tidemark.Call) (bool, error) {
	api := tidemark.APIError{Class: tidemark.ClassRefusal, Message: "the model declined to answer"}
	if len(r.guessed) > 0 {
		back, err := s.setAside(ctx, r, &api)
		if err != nil {
			return false, err
		}
		r.guessed = nil
		return false, s.step(ctx, r, stateCalling, back...)
	}
	from, err := s.turnFrom(ctx, r)
	if err != nil {
		return false, err
	}
	edits := firstEdits(v.Items, -1, api, leftBefore(v.Items, from))
	if len(edits) == 0 || r.mends >= maxMends {
		return false, nil
	}
	return true, s.takeOut(ctx, r, api, edits, s.addUsage(c.Usage), spendStmt(r, c.Usage))
}

// leftBefore are the blocks that were said before a turn and that no model answered.
func leftBefore(items []compaction.Item, from int64) func(int, tidemark.Block) bool {
	answered := answeredIn(items)
	return func(i int, _ tidemark.Block) bool { return i > answered && items[i].Seq < from }
}

// takeOut has notes read in the place of what was refused. Where the API named no place, it is taken back if the turn is
// refused all the same, see setAside.
func (s *Session) takeOut(ctx context.Context, r *run, api tidemark.APIError, edits []tidemark.Edit, more ...tidemark.Stmt) error {
	if len(edits) == 0 {
		return nil
	}
	o := tidemark.Overlay{By: []string{"session"}, Reason: "refused", Edits: edits}
	id, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, o)
	if err != nil {
		return err
	}
	if api.Place == nil {
		r.guessed = append(r.guessed, id)
	} else {
		r.placed = append(r.placed, placed{id, *api.Place})
	}
	return s.mended(ctx, r, append(stmts, more...), fmt.Sprintf("The model's API refused a part of entry %s (%s). The model reads a note in its place from now on; the log keeps it.", edits[0].From, quoted(api.Message)))
}

// placed is an overlay that took a place out.
type placed struct {
	id tidemark.EntryID
	at tidemark.Place
}

// misplaced are the overlays of a turn that took out what stood at a place which is refused all the same, once nothing more is
// to be taken out there.
func (r *run) misplaced(api tidemark.APIError) (ids []tidemark.EntryID) {
	for _, p := range r.placed {
		if api.Place != nil && p.at == *api.Place && r.mends < maxMends {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// liftOf puts back what was taken out.
func liftOf(overlays []tidemark.EntryID) tidemark.Overlay {
	return tidemark.Overlay{By: []string{"session"}, Lifts: overlays, Reason: "refused all the same"}
}

// mended records that something was mended, and tells the people of the turn.
func (s *Session) mended(ctx context.Context, r *run, stmts []tidemark.Stmt, line string) error {
	r.mends++
	lines, err := s.teller().Lines(ctx, r.Log, r.origins, line)
	if err != nil {
		return err
	}
	return s.announce(ctx, r, line, append(stmts, lines...)...)
}

func quoted(text string) string {
	if len(text) > maxRefusal {
		text = text[:maxRefusal]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}

// mendEdits are the edits that take a place out of a view, none where it is not of an entry, or was taken out before. The
// request has the messages of the view, merged and with ours between: a block is found by its bytes, wherever it stands,
// since the same bytes are refused again.
func mendEdits(v View, api tidemark.APIError) []tidemark.Edit {
	if api.Place == nil {
		return mediaEdits(v, api)
	}
	sent := v.Messages()
	p := *api.Place
	if p.Message < 0 || p.Message >= len(sent) || p.Block >= len(sent[p.Message].Content) {
		return nil
	}
	blocks, guilty := sent[p.Message].Content, []func(tidemark.Block) bool{suspect, answers, anything}
	if p.Block >= 0 {
		blocks, guilty = blocks[p.Block:p.Block+1], guilty[2:]
	}
	var wanted []func(int, tidemark.Block) bool
	for _, guilty := range guilty {
		raw := map[string]bool{}
		for _, b := range blocks {
			raw[string(b.AppendJSON(nil))] = guilty(b)
		}
		wanted = append(wanted, func(_ int, b tidemark.Block) bool { return raw[string(b.AppendJSON(nil))] })
	}
	return firstEdits(v.Items, p.Inner, api, wanted...)
}

// firstEdits have a note read in the place of the blocks that are guilty by the first of some rules by which any is.
func firstEdits(items []compaction.Item, inner int, api tidemark.APIError, rules ...func(i int, b tidemark.Block) bool) []tidemark.Edit {
	for _, guilty := range rules {
		var edits []tidemark.Edit
		for i := range items {
			it := &items[i]
			if it.Span() {
				continue
			}
			for at, b := range it.Message.Content {
				if !guilty(i, b) {
					continue
				}
				if e, ok := mendEdit(it, at, inner, quoted(api.Message)); ok {
					edits = append(edits, e)
				}
			}
		}
		if len(edits) > 0 {
			return edits
		}
	}
	return nil
}

// answeredIn is the last item in which a model answered, -1 for none: what stands behind it is not answered.
func answeredIn(items []compaction.Item) int {
	n := len(items) - 1
	for n >= 0 && (items[n].Message.Role != tidemark.Assistant || items[n].Call != nil && items[n].Call.Declined()) {
		n--
	}
	return n
}

// mediaWords are in what APIs say of a picture or a document that they cannot load or read, without a place: "Could not
// process image", "Unable to download the file", "Error while downloading …", "The PDF specified was not valid".
var mediaWords = [...]string{"image", "image_url", "input_image", "input_file", "picture", "file", "download", "downloading", "pdf", "document", "media", "multimodal"}

// mediaEdits are the edits that take out pictures and documents where an API refuses one and does not say which: those
// that no model has answered yet, else those that it has to load itself, since what was there may be gone, else all.
func mediaEdits(v View, api tidemark.APIError) []tidemark.Edit {
	if notFound(api) || !speaksOf(api, mediaWords[:]...) {
		return nil
	}
	answered := answeredIn(v.Items)
	held := func(guilty func(i int, b tidemark.Block) bool) func(int, tidemark.Block) bool {
		return func(i int, b tidemark.Block) bool {
			return slices.ContainsFunc(append([]tidemark.Block{b}, b.Content...), func(b tidemark.Block) bool { return medium(b) && guilty(i, b) })
		}
	}
	return firstEdits(v.Items, -1, api,
		held(func(i int, _ tidemark.Block) bool { return i > answered }),
		held(func(_ int, b tidemark.Block) bool { return b.Source != nil && b.Source.Type == "url" }),
		held(func(_ int, b tidemark.Block) bool { return anything(b) }))
}

// address is where an API says that more is to be read.
var address = regexp.MustCompile(`https?://\S+`)

// speaksOf reports whether one of some words, or more than one of it, is in what an API said. "Consult our documentation"
// is not of documents.
func speaksOf(api tidemark.APIError, words ...string) bool {
	said := strings.FieldsFunc(strings.ToLower(address.ReplaceAllString(api.Message, "")), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
	return slices.ContainsFunc(said, func(w string) bool {
		return slices.Contains(words, w) || slices.Contains(words, strings.TrimSuffix(w, "s"))
	})
}

// medium reports a block that an API has to decode; words of a document are none.
func medium(b tidemark.Block) bool {
	_, words := b.DocumentText()
	return (b.Type == tidemark.TypeImage || b.Type == tidemark.TypeDocument) && !words
}

// Of a message that an API names as a whole, suspect is taken out first: what people and models wrote is not. What a tool
// answered comes next, and what they wrote only where nothing else is left: else every later turn would fail.
func suspect(b tidemark.Block) bool {
	switch b.Type {
	case tidemark.TypeText, tidemark.TypeToolUse:
		return false
	case tidemark.TypeToolResult:
		return slices.ContainsFunc(b.Content, func(c tidemark.Block) bool { return c.Type != tidemark.TypeText })
	}
	return true
}

func answers(b tidemark.Block) bool { return b.Type == tidemark.TypeToolResult }

func anything(tidemark.Block) bool { return true }

// mendEdit has a note read in the place of a block of an item, or of one block in a result.
func mendEdit(it *compaction.Item, at, inner int, why string) (tidemark.Edit, bool) {
	b, n := it.Message.Content[at], it.Block(at)
	note := func(kind string) string {
		return fmt.Sprintf("%s%s. A block of the type %s stood here; recall with {\"entry\": \"%s#%d\"} tells what the log keeps of it.]", mendedMark, why, kind, it.ID, n)
	}
	again := slices.ContainsFunc(it.Stubbed, func(st compaction.Stubbed) bool { return st.Block == n }) // else the mark is somebody's words
	var with []tidemark.Block
	switch {
	case again && strings.HasPrefix(b.Text, mendedMark):
		return tidemark.Edit{}, false
	case b.Type == tidemark.TypeThinking || b.Type == tidemark.TypeRedactedThinking: // nobody misses it
	case b.Type == tidemark.TypeToolResult:
		text, done := mendResult(b, inner, again, note)
		if !done {
			return tidemark.Edit{}, false
		}
		with = []tidemark.Block{text}
	case b.Type == tidemark.TypeToolUse: // its result becomes a text by itself
		with = []tidemark.Block{tidemark.Text(note(b.Type + " " + b.Name))}
	default:
		with = []tidemark.Block{tidemark.Text(note(b.Type))}
	}
	for _, st := range it.Stubbed { // it is one of those that stand for a block of the entry: the others stay
		if st.Block == n {
			with = slices.Concat(it.Message.Content[st.At:at], with, it.Message.Content[at+1:st.At+st.Many])
		}
	}
	return tidemark.Edit{From: it.ID, Block: n, Blocks: with}, true
}

// mendResult is a result with a note in the place of one of its blocks, or of all that is no text; or of all of it, where
// those are notes already, as they may be where some were put there before (again).
func mendResult(b tidemark.Block, inner int, again bool, note func(kind string) string) (tidemark.Block, bool) {
	out := tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: b.ToolUseID, IsError: b.IsError, Content: slices.Clone(b.Content)}
	done := false
	for i, c := range out.Content {
		if (i == inner || inner < 0 && c.Type != tidemark.TypeText) && !(again && strings.HasPrefix(c.Text, mendedMark)) {
			out.Content[i], done = tidemark.Text(note(c.Type)), true
		}
	}
	if done || again && len(b.Content) == 1 && strings.HasPrefix(b.Content[0].Text, mendedMark) {
		return out, done
	}
	return tidemark.ToolResult(b.ToolUseID, note(b.Type), b.IsError), true
}

// mendTool leaves a tool out whose definition was refused, until it is another one.
func (s *Session) mendTool(ctx context.Context, r *run, v View, api tidemark.APIError) (bool, error) {
	i := slices.IndexFunc(v.Tools, func(t tidemark.Tool) bool { return t.Name == api.Place.Tool })
	if i < 0 {
		return false, nil
	}
	why := quoted(api.Message)
	stmts, kept := s.refuse(v.Tools[i], why)
	err := s.mended(ctx, r, stmts, fmt.Sprintf("The model's API refused the tool %s (%s). It is left out until its definition is another one.", api.Place.Tool, why))
	if err == nil {
		kept()
	}
	return err == nil, err
}

// otherWords are, beside those of parameters, in what APIs say of a request whose messages they do not mind, though they may
// mind how large it is.
var otherWords = [...]string{"param", "parameter", "token", "max_tokens", "tool", "function", "thinking", "reasoning"}

// parameterWords name a parameter that has nothing to do with what is said, nor with how much: no refusal of a large
// request has them. It may speak of max_tokens, as vLLM does where a prompt leaves none.
var parameterWords = [...]string{"temperature", "top_p", "top_k", "schema", "budget_tokens", "stream", "streaming", "stream_options", "stop_sequences",
	"tool_choice", "response_format", "metadata", "user_id", "service_tier"}

// parameterAt is the place that an API begins with where it refuses a parameter: "metadata.user_id: string too long". A word of
// its own before a colon ("n_ctx: ", "E_TOO_MUCH: ") is none, nor is where something is said.
var parameterAt = regexp.MustCompile(`^(?:tools|tool_choice|parallel_tool_calls|anthropic-beta|betas|model|max_tokens|max_completion_tokens|metadata|user|thinking|reasoning|reasoning_effort|` +
	`stream|stream_options|temperature|top_p|top_k|min_p|seed|n|stop|stop_sequences|logprobs|top_logprobs|logit_bias|presence_penalty|frequency_penalty|response_format|service_tier|` +
	`container|context_management|mcp_servers|output_config|cache_control)(?:\.[a-z0-9._]+)?: `)

// parameterText is what APIs say of a parameter that they do not know.
var parameterText = regexp.MustCompile(`\b(?:unsupported|unrecognized|unknown) (?:request )?(?:parameter|argument)|\b(?:tools?|functions?|function calling) (?:is|are) not supported|not support (?:tools?|functions?|function calling)\b`)

// ofParameter reports a refusal for a parameter: neither less nor other messages would change it.
func ofParameter(api tidemark.APIError) bool {
	said := strings.ToLower(address.ReplaceAllString(api.Message, ""))
	if strings.Contains(said, "messages") {
		return false
	}
	return parameterAt.MatchString(said) || parameterText.MatchString(said) || speaksOf(api, parameterWords[:]...)
}

// setAside keeps what is no text in the input of a turn that failed (a type that no provider takes, a picture) from being
// refused with every later turn, where the refusal may be for it: it names such a type, speaks of media, or names nothing
// at all. The originals stay in the log, and the overlay can be lifted.
func (s *Session) setAside(ctx context.Context, r *run, why error) ([]tidemark.Stmt, error) {
	var api *tidemark.APIError
	if errors.As(why, &api) && (api.Class == tidemark.ClassBadRequest || api.Class == tidemark.ClassRefusal) {
		if wrong := append(r.guessed, r.misplaced(*api)...); len(wrong) > 0 {
			_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, liftOf(wrong))
			return append(stmts, s.eventStmt(r.Log, tidemark.Event{Type: "notice", Text: "What was taken out was not why. It is in view as before."})), err
		}
	}
	if api == nil || api.Class != tidemark.ClassBadRequest || notFound(*api) || len(r.took) == 0 {
		return nil, nil
	}
	if api.Place != nil || api.Param != "" && !strings.HasPrefix(api.Param, "messages") || ofParameter(*api) {
		return nil, nil // a place is mended where it can be
	}
	const look = 200 // entries, more than one call takes up
	var items []compaction.Item
	seen := 0
	for e, err := range s.log.Walk(ctx, r.Log, 0) {
		if err != nil {
			return nil, err
		}
		if seen++; seen > look {
			break
		}
		if e.Kind == tidemark.KindMessage && slices.Contains(r.took, e.Origin.Input) {
			m, err := e.Message()
			if err != nil {
				return nil, err
			}
			items = append(items, compaction.Item{ID: e.ID, Message: m})
		}
	}
	edits := firstEdits(items, -1, *api,
		func(_ int, b tidemark.Block) bool { return b.Type != tidemark.TypeText && speaksOf(*api, b.Type) },
		func(_ int, b tidemark.Block) bool {
			return b.Type != tidemark.TypeText && (speaksOf(*api, mediaWords[:]...) || !speaksOf(*api, slices.Concat(otherWords[:], []string{"model", "system"})...))
		})
	if len(edits) == 0 {
		return nil, nil
	}
	_, stmts, err := s.overlayStmts(r.Log, tidemark.FromSystem, tidemark.Overlay{By: []string{"session"}, Reason: "refused", Edits: edits})
	return stmts, err
}
