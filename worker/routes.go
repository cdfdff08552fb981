package worker

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
)

// route is one row of the table: docs/http.md says what each takes and gives.
type route struct {
	pattern string // of http.ServeMux
	takes   string // names of its query parameters; anything: those of others too, which it does not read
	open    bool   // needs no token
	serve   func(*request) (any, error)
}

// anything is what doors of other APIs take, and what is asked by programs that are not ours to correct: their clients
// send parameters that we do not know.
const anything = "*"

// Parameters that several routes take.
const (
	paged   = "cursor limit"
	said    = "stream wait"                // by what waits for a turn
	recalls = "q k since until budget all" // of what is looked for
)

// hint is the pattern of the one page that says what this is.
const hint = "GET /{$}"

// routes is the table.
func routes() []route {
	const key, agents = "/v1/sessions/{key}", "/v1/agents/{agent}"
	return slices.Concat(ofSnapshots(), ofSchedules(), ofTools(), []route{
		{"POST " + key + "/messages", said, false, postMessage},
		{"GET /v1/sessions", "agent " + paged, false, listSessions},
		{"GET " + key, "", false, in((*request).rooted, getSession)},
		{"PATCH " + key, "", false, patchSession},
		{"GET " + key + "/view", "messages", false, getView},
		{"GET " + key + "/log", "before limit format all messages", false, getLog},
		{"GET " + key + "/entries/{id}", "", false, in((*request).rooted, getEntry)},
		{"GET " + key + "/anatomy", "before limit", false, getAnatomy},
		{"GET " + key + "/anatomy/{n}/prompt", "", false, getPrompt},
		{"GET " + key + "/search", "q limit", false, searchSession},
		{"GET " + key + "/recall", recalls + " episode offset", false, recallSession},
		{"GET " + key + "/episodes", "before limit", false, getEpisodes},
		{"GET " + key + "/task", "", false, in((*request).shown, getTask)},
		{"POST " + key + "/task", "", false, postTask},
		{"GET " + key + "/events", "", false, in((*request).rooted, liveEvents)},
		{"GET " + key + "/queue", "", false, in((*request).rooted, getQueue)},
		{"GET /ws", "session name create", false, openSocket},
		{"GET /events", "session", false, rootEvents},
		{"POST " + key + "/compact", said, false, postCompact},
		{"POST " + key + "/reset", said, false, postReset},
		{"POST " + key + "/abort", "", false, in((*request).there, postAbort)},
		{"POST " + key + "/commands", said, false, postCommand},
		{"GET " + key + "/outbound", "limit", false, getOutbound},
		{"POST " + key + "/undo", "", false, postUndo},
		{"POST " + key + "/import", "format window stream", false, postImport},
		{"POST " + key + "/restore", "stream", false, postRestore},
		{"GET /v1/recall", recalls + " agent session scope peer", false, recallWide},
		{"GET /v1/agents", "", false, listAgents},
		{"GET " + agents + "/memory", paged, false, listMemory},
		{"GET " + agents + "/memory/{path...}", "versions version", false, getMemory},
		{"GET " + agents + "/memory/ledger", paged, false, getLedger},
		{"POST " + agents + "/memory/ledger/undo", "", false, undoLedger},
		{"GET " + agents + "/memory/digest", "", false, in((*request).agent, getDigest)},
		{"POST " + agents + "/memory/digest", "", false, in((*request).agent, postDigest)},
		{"PUT " + agents + "/memory/{path...}", "", false, putMemory},
		{"POST " + agents + "/memory-undo", "", false, undoMemory},
		{"GET " + agents + "/memory-search", "q limit", false, searchMemory},
		{"GET " + agents + "/archives", "session " + paged, false, listArchives},
		{"GET " + agents + "/archives/{name}", "format", false, getArchive},
		{"GET " + agents + "/archives-search", "q session limit", false, searchArchives},
		{"POST " + agents + "/archives-verify", "", false, verifyArchives},
		{"POST /v1/chat/completions", anything, false, postChat},
		{"GET /v1/models", anything, false, listModels},
		{"GET /v1/models/{id...}", anything, false, getModel},
		{"POST /v1/messages", anything, false, postMessages},
		{"POST /v1/messages/count_tokens", anything, false, countTokens},
		{"POST /p/{name}/v1/messages", anything, false, postMessages},
		{"POST /p/{name}/v1/messages/count_tokens", anything, false, countTokens},
		{"POST /p/{name}/v1/chat/completions", anything, false, postChat},
		{"/p/{name}/v1/{path...}", anything, false, passOther},
		{"POST /s/{key}/v1/messages", anything, false, postMessages},
		{"POST /s/{key}/v1/messages/count_tokens", anything, false, countTokens},
		{"POST /api/chat", anything, false, postUI},
		{"GET /api/chat/{id}/stream", anything, false, getUI},
		{"GET " + agents + "/pairing", "", false, in((*request).book, getPairing)},
		{"GET " + agents + "/webhooks", "", false, getWebhooks},
		{"POST " + agents + "/pairing", "", false, postPairing},
		{"GET " + agents + "/owner", "", false, in((*request).book, getOwner)},
		{"POST " + agents + "/owner", "", false, postOwner},
		{"GET /webhooks/{channel}", anything, true, getWebhook},
		{"POST /webhooks/{channel}", anything, true, postWebhook},
		{"GET /metrics", anything, false, getMetrics},
		{"GET /healthz", anything, true, getHealth},
		{hint, anything, true, getPage},
		{"GET /assets/{file}", anything, true, getPage},
	})
}

// ofTools are the rows about what agents do: tools, approvals, schedules, skills, and the tools that we are to others.
func ofTools() []route {
	const key, agents = "/v1/sessions/{key}", "/v1/agents/{agent}"
	return []route{
		{"GET " + key + "/approvals", "", false, getApprovals},
		{"POST " + key + "/approvals", "", false, in((*request).there, postApproval)},
		{"GET " + agents + "/approvals", "", false, in((*request).agent, listApprovals)},
		{"POST " + agents + "/approvals", "", false, in((*request).agent, decideApproval)},
		{"GET " + agents + "/skills", "", false, in((*request).agent, listSkills)},
		{"GET " + agents + "/skills/{name}", "", false, in((*request).agent, getSkill)},
		{"PUT " + agents + "/skills/{name}", "", false, putSkill},
		{"DELETE " + agents + "/skills/{name}", "", false, in((*request).agent, deleteSkill)},
		{"GET " + agents + "/skills/{name}/{file...}", "", false, in((*request).agent, getSkill)},
		{"PUT " + agents + "/skills/{name}/{file...}", "", false, putSkill},
		{"DELETE " + agents + "/skills/{name}/{file...}", "", false, in((*request).agent, deleteSkill)},
		{"GET " + agents + "/tools", "", false, in((*request).agent, getTools)},
		{"POST /mcp", anything, false, postMCP},
	}
}

// ofSnapshots are the rows about snapshots, branches and what they cost.
func ofSnapshots() []route {
	const key = "/v1/sessions/{key}"
	return []route{
		{"POST " + key + "/snapshots", "", false, postSnapshot},
		{"GET " + key + "/snapshots", paged + " order", false, listSnapshots},
		{"GET " + key + "/snapshots/{id}", "", false, in((*request).there, getSnapshot)},
		{"DELETE " + key + "/snapshots/{id}", "", false, in((*request).there, deleteSnapshot)},
		{"GET " + key + "/snapshots/{id}/archive", "", false, in((*request).there, getSnapshotArchive)},
		{"POST " + key + "/branch", "", false, postBranch},
		{"POST " + key + "/trim", "", false, postTrim},
		{"POST " + key + "/merge", "", false, postMerge},
		{"GET " + key + "/cost", "model hitRate threshold", false, getCost},
		{"GET /v1/tree", "agent order " + paged, false, getTree},
		{"GET /v1/snapshots/{id}", "agent", false, findSnapshot},
		{"GET /v1/snapshots/{id}/archive", "session agent", false, getArchiveByID},
		{"PUT /v1/snapshots/{id}/archive", "session", false, putArchiveByID},
		{"GET /v1/compare", "a b session agent", false, getCompare},
	}
}

// in opens what a route is about before it is carried out.
func in[T any](open func(*request) (T, error), serve func(*request, T) (any, error)) func(*request) (any, error) {
	return func(c *request) (any, error) {
		about, err := open(c)
		if err != nil {
			return nil, err
		}
		return serve(c, about)
	}
}

// there returns the session that the path names, which must exist.
func (c *request) there() (*session.Session, error) { return c.session(false) }

// session returns the session that the path names.
func (c *request) session(create bool) (*session.Session, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	key, err := tidemark.ParseKey(c.r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	if c.r.Method == http.MethodPost || c.r.Method == http.MethodDelete {
		if err := writable(key); err != nil {
			return nil, err
		}
	}
	return c.enter(key, create)
}

// enter opens a session. One that does not exist is made with create, but for a branch: one of nothing, as a name that is
// misspelt would be, has nothing of what it is meant to go on from.
func (c *request) enter(key tidemark.Key, create bool) (*session.Session, error) {
	branch := key != key.Root()
	s, err := c.Actors.Session(c.r.Context(), key, create && !branch)
	switch {
	case err == nil:
		return s, nil
	case create && branch && errors.Is(err, tidemark.ErrNotFound):
		err = fmt.Errorf("there is no such branch; POST /v1/sessions/%s/branch makes one: %w", key.Root(), tidemark.ErrNotFound)
	}
	return nil, fmt.Errorf("open session %s: %w", key, err)
}

// owner returns an agent.
func (c *request) owner(name string) (*agent.Agent, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	key, err := tidemark.ParseKey("agent:" + name + ":main")
	if err != nil || key.Agent() != name {
		return nil, fmt.Errorf("agent %q: want letters in lower case, digits, - and _: %w", clip.To(name, 80), tidemark.ErrInvalid)
	}
	a, err := c.Actors.Agent(c.r.Context(), name)
	if err != nil {
		return nil, fmt.Errorf("open agent %s: %w", name, err)
	}
	return a, nil
}

// Bounds of listings.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// note keeps the first thing that is wrong with a request. It is what opening a session or an agent fails with, so a
// route reads its parameters and its body before it opens anything.
func (c *request) note(err error) {
	if c.bad == nil {
		c.bad = err
	}
}

// wrong notes a mistake in a request.
func wrong(c *request, format string, args ...any) {
	c.note(fmt.Errorf(format+": %w", append(args, tidemark.ErrInvalid)...))
}

// refuse notes that a query parameter cannot be read.
func refuse(c *request, name, got, want string) {
	wrong(c, "%s=%s: want %s", name, clip.To(got, 40), want)
}

// number reads a query parameter that is a whole number within bounds.
func (c *request) number(name string, otherwise, least, most int64) int64 {
	s := c.r.URL.Query().Get(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		refuse(c, name, s, fmt.Sprintf("a number from %d to %d", least, most))
	}
	return n
}

// limit reads ?limit.
func (c *request) limit() int { return int(c.number("limit", defaultLimit, 1, maxLimit)) }

// flag reads a query parameter that is on or off.
func (c *request) flag(name string, otherwise bool) bool {
	switch s := c.r.URL.Query().Get(name); s {
	case "":
	case "1", "true":
		return true
	case "0", "false":
		return false
	default:
		refuse(c, name, s, "1 or 0")
	}
	return otherwise
}

// one reads a query parameter that is one of a few words; the first is the default.
func (c *request) one(name string, words ...string) string {
	s := c.r.URL.Query().Get(name)
	if s == "" || slices.Contains(words, s) {
		return cmp.Or(s, words[0])
	}
	refuse(c, name, s, strings.Join(words, " or "))
	return s
}

// query reads ?q, which must be there.
func (c *request) query() string {
	const most = 1000
	q := c.r.URL.Query().Get("q")
	if q == "" || len(q) > most || invalidUTF8([]byte(q)) >= 0 {
		wrong(c, "q: want words to look for, up to %d bytes of UTF-8", most)
	}
	return q
}

// known refuses a query with parameters that the route does not take, or that are given twice: mistyped, they would do
// nothing, and of two only the first would be read, and the answer would look like that to the question.
func (c *request) known(takes string) error {
	if takes == anything || c.r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil { // what cannot be read would be left out
		return fmt.Errorf("query: %w: %w", err, tidemark.ErrInvalid)
	}
	names := strings.Fields(takes)
	var unknown, repeated []string
	for name, all := range values {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
		if len(all) > 1 {
			repeated = append(repeated, name)
		}
	}
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("query: unknown parameter %s: %w", suggest(slices.Min(unknown), names), tidemark.ErrInvalid)
	case len(repeated) > 0:
		name := slices.Min(repeated)
		return fmt.Errorf("query: parameter %q is given %d times, want one: %w", name, len(values[name]), tidemark.ErrInvalid)
	}
	return nil
}

// response is the answer of a route that is not a plain 200: its status, and a body in JSON or none.
type response struct {
	status int
	body   any
}

// made is the answer of a route that made something, or found that it had made it before.
func made(v any, again bool) response {
	if again {
		return response{http.StatusOK, v}
	}
	return response{http.StatusCreated, v}
}

// write is where every answer of a route is written; nil is one that was written on the way, as streams and files are.
func (c *request) write(v any) error {
	r, ok := v.(response)
	switch {
	case v == nil:
		return nil
	case !ok:
		r = response{http.StatusOK, v}
	case r.body == nil:
		c.w.WriteHeader(r.status)
		return nil
	}
	return writeJSON(c.w, r.status, r.body)
}

// reply answers with JSON.
func (c *request) reply(status int, v any) error { return writeJSON(c.w, status, v) }

func writeJSON(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", codeJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)+1))
	w.WriteHeader(status)
	_, err = w.Write(append(raw, '\n'))
	return err
}

// getPage gives a file of the page, or at / of a binary without one a hint.
func getPage(c *request) (any, error) {
	switch {
	case c.Page != nil:
		c.Page.ServeHTTP(c.w, c.r)
		return nil, nil
	case c.r.URL.Path == "/":
		return getHint(c)
	}
	return nil, &refused{http.StatusNotFound, "not_found", "this was built without its page (run `make web`, then build it)"}
}

// getHint tells a person who came with a browser what this is.
func getHint(c *request) (any, error) {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintf(c.w, "Tidemark %s: a chat backend whose conversations never end and never forget.\n\nSay something:\n  curl http://%s/v1/sessions/main/messages -d '{\"text\":\"hello\"}'\n\nThe routes are in docs/http.md.\n", c.Version, c.r.Host)
	return nil, err
}
