package worker

import (
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
	serve   func(*call) error
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
		{"POST " + key + "/messages", said, false, (*call).postMessage},
		{"GET /v1/sessions", "agent " + paged, false, (*call).listSessions},
		{"GET " + key, "", false, (*call).getSession},
		{"PATCH " + key, "", false, (*call).patchSession},
		{"GET " + key + "/view", "messages", false, (*call).getView},
		{"GET " + key + "/log", "before limit format all messages", false, (*call).getLog},
		{"GET " + key + "/entries/{id}", "", false, (*call).getEntry},
		{"GET " + key + "/anatomy", "before limit", false, (*call).getAnatomy},
		{"GET " + key + "/anatomy/{n}/prompt", "", false, (*call).getPrompt},
		{"GET " + key + "/search", "q limit", false, (*call).searchSession},
		{"GET " + key + "/recall", recalls + " episode offset", false, (*call).recallSession},
		{"GET " + key + "/episodes", "before limit", false, (*call).getEpisodes},
		{"GET " + key + "/task", "", false, (*call).getTask},
		{"POST " + key + "/task", "", false, (*call).postTask},
		{"GET " + key + "/events", "", false, (*call).liveEvents},
		{"GET " + key + "/queue", "", false, (*call).getQueue},
		{"GET /ws", "session name create", false, (*call).openSocket},
		{"GET /events", "session", false, (*call).rootEvents},
		{"POST " + key + "/compact", said, false, (*call).postCompact},
		{"POST " + key + "/reset", said, false, (*call).postReset},
		{"POST " + key + "/abort", "", false, (*call).postAbort},
		{"POST " + key + "/commands", said, false, (*call).postCommand},
		{"GET " + key + "/outbound", "limit", false, (*call).getOutbound},
		{"POST " + key + "/undo", "", false, (*call).postUndo},
		{"POST " + key + "/import", "format window stream", false, (*call).postImport},
		{"POST " + key + "/restore", "stream", false, (*call).postRestore},
		{"GET /v1/recall", recalls + " agent session scope peer", false, (*call).recallWide},
		{"GET /v1/agents", "", false, (*call).listAgents},
		{"GET " + agents + "/memory", paged, false, (*call).listMemory},
		{"GET " + agents + "/memory/{path...}", "versions version", false, (*call).getMemory},
		{"GET " + agents + "/memory/ledger", paged, false, (*call).getLedger},
		{"POST " + agents + "/memory/ledger/undo", "", false, (*call).undoLedger},
		{"GET " + agents + "/memory/digest", "", false, (*call).getDigest},
		{"POST " + agents + "/memory/digest", "", false, (*call).postDigest},
		{"PUT " + agents + "/memory/{path...}", "", false, (*call).putMemory},
		{"POST " + agents + "/memory-undo", "", false, (*call).undoMemory},
		{"GET " + agents + "/memory-search", "q limit", false, (*call).searchMemory},
		{"GET " + agents + "/archives", "session " + paged, false, (*call).listArchives},
		{"GET " + agents + "/archives/{name}", "format", false, (*call).getArchive},
		{"GET " + agents + "/archives-search", "q session limit", false, (*call).searchArchives},
		{"POST " + agents + "/archives-verify", "", false, (*call).verifyArchives},
		{"POST /v1/chat/completions", anything, false, (*call).postChat},
		{"GET /v1/models", anything, false, (*call).listModels},
		{"GET /v1/models/{id...}", anything, false, (*call).getModel},
		{"POST /v1/messages", anything, false, (*call).postMessages},
		{"POST /v1/messages/count_tokens", anything, false, (*call).countTokens},
		{"POST /p/{name}/v1/messages", anything, false, (*call).postMessages},
		{"POST /p/{name}/v1/messages/count_tokens", anything, false, (*call).countTokens},
		{"POST /p/{name}/v1/chat/completions", anything, false, (*call).postChat},
		{"/p/{name}/v1/{path...}", anything, false, (*call).passOther},
		{"POST /s/{key}/v1/messages", anything, false, (*call).postMessages},
		{"POST /s/{key}/v1/messages/count_tokens", anything, false, (*call).countTokens},
		{"POST /api/chat", anything, false, (*call).postUI},
		{"GET /api/chat/{id}/stream", anything, false, (*call).getUI},
		{"GET " + agents + "/pairing", "", false, (*call).getPairing},
		{"GET " + agents + "/webhooks", "", false, (*call).getWebhooks},
		{"POST " + agents + "/pairing", "", false, (*call).postPairing},
		{"GET " + agents + "/owner", "", false, (*call).getOwner},
		{"POST " + agents + "/owner", "", false, (*call).postOwner},
		{"GET /webhooks/{channel}", anything, true, (*call).getWebhook},
		{"POST /webhooks/{channel}", anything, true, (*call).postWebhook},
		{"GET /metrics", anything, false, (*call).getMetrics},
		{"GET /healthz", anything, true, (*call).getHealth},
		{hint, anything, true, (*call).getPage},
		{"GET /assets/{file}", anything, true, (*call).getPage},
	})
}

// ofTools are the rows about what agents do: tools, approvals, schedules, skills, and the tools that we are to others.
func ofTools() []route {
	const key, agents = "/v1/sessions/{key}", "/v1/agents/{agent}"
	return []route{
		{"GET " + key + "/approvals", "", false, (*call).getApprovals},
		{"POST " + key + "/approvals", "", false, (*call).postApproval},
		{"GET " + agents + "/approvals", "", false, (*call).listApprovals},
		{"POST " + agents + "/approvals", "", false, (*call).decideApproval},
		{"GET " + agents + "/skills", "", false, (*call).listSkills},
		{"GET " + agents + "/skills/{name}", "", false, (*call).getSkill},
		{"PUT " + agents + "/skills/{name}", "", false, (*call).putSkill},
		{"DELETE " + agents + "/skills/{name}", "", false, (*call).deleteSkill},
		{"GET " + agents + "/skills/{name}/{file...}", "", false, (*call).getSkill},
		{"PUT " + agents + "/skills/{name}/{file...}", "", false, (*call).putSkill},
		{"DELETE " + agents + "/skills/{name}/{file...}", "", false, (*call).deleteSkill},
		{"GET " + agents + "/tools", "", false, (*call).getTools},
		{"POST /mcp", anything, false, (*call).postMCP},
	}
}

// ofSnapshots are the rows about snapshots, branches and what they cost.
func ofSnapshots() []route {
	const key = "/v1/sessions/{key}"
	return []route{
		{"POST " + key + "/snapshots", "", false, (*call).postSnapshot},
		{"GET " + key + "/snapshots", paged + " order", false, (*call).listSnapshots},
		{"GET " + key + "/snapshots/{id}", "", false, (*call).getSnapshot},
		{"DELETE " + key + "/snapshots/{id}", "", false, (*call).deleteSnapshot},
		{"GET " + key + "/snapshots/{id}/archive", "", false, (*call).getSnapshotArchive},
		{"POST " + key + "/branch", "", false, (*call).postBranch},
		{"POST " + key + "/trim", "", false, (*call).postTrim},
		{"POST " + key + "/merge", "", false, (*call).postMerge},
		{"GET " + key + "/cost", "model hitRate threshold", false, (*call).getCost},
		{"GET /v1/tree", "agent order " + paged, false, (*call).getTree},
		{"GET /v1/snapshots/{id}", "agent", false, (*call).findSnapshot},
		{"GET /v1/snapshots/{id}/archive", "session agent", false, (*call).getArchiveByID},
		{"PUT /v1/snapshots/{id}/archive", "session", false, (*call).putArchiveByID},
		{"GET /v1/compare", "a b session agent", false, (*call).getCompare},
	}
}

// session returns the session that the path names.
func (c *call) session(create bool) (*session.Session, error) {
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
func (c *call) enter(key tidemark.Key, create bool) (*session.Session, error) {
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

// owner returns the agent that the path names, and the name.
func (c *call) owner(name string) (*agent.Agent, string, error) {
	key, err := tidemark.ParseKey("agent:" + name + ":main")
	if err != nil || key.Agent() != name {
		return nil, "", fmt.Errorf("agent %q: want letters in lower case, digits, - and _: %w", clip.To(name, 80), tidemark.ErrInvalid)
	}
	a, err := c.Actors.Agent(c.r.Context(), name)
	if err != nil {
		return nil, "", fmt.Errorf("open agent %s: %w", name, err)
	}
	return a, name, nil
}

// Bounds of listings.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// number reads a query parameter that is a whole number within bounds.
func (c *call) number(name string, otherwise, least, most int64) (int64, error) {
	s := c.r.URL.Query().Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s=%s: want a number from %d to %d: %w", name, clip.To(s, 40), least, most, tidemark.ErrInvalid)
	}
	return n, nil
}

// limit reads ?limit.
func (c *call) limit() (int, error) {
	n, err := c.number("limit", defaultLimit, 1, maxLimit)
	return int(n), err
}

// flag reads a query parameter that is on or off.
func (c *call) flag(name string, otherwise bool) (bool, error) {
	switch s := c.r.URL.Query().Get(name); s {
	case "":
		return otherwise, nil
	case "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	default:
		return false, fmt.Errorf("%s=%s: want 1 or 0: %w", name, clip.To(s, 40), tidemark.ErrInvalid)
	}
}

// one reads a query parameter that is one of a few words; the first is the default.
func (c *call) one(name string, words ...string) (string, error) {
	s := c.r.URL.Query().Get(name)
	if s == "" {
		return words[0], nil
	}
	for _, w := range words {
		if s == w {
			return w, nil
		}
	}
	return "", fmt.Errorf("%s=%s: want %s: %w", name, clip.To(s, 40), strings.Join(words, " or "), tidemark.ErrInvalid)
}

// query reads ?q, which must be there.
func (c *call) query() (string, error) {
	const most = 1000
	q := c.r.URL.Query().Get("q")
	if q == "" || len(q) > most || invalidUTF8([]byte(q)) >= 0 {
		return "", fmt.Errorf("q: want words to look for, up to %d bytes of UTF-8: %w", most, tidemark.ErrInvalid)
	}
	return q, nil
}

// known refuses a query with parameters that the route does not take, or that are given twice: mistyped, they would do
// nothing, and of two only the first would be read, and the answer would look like that to the question.
func (c *call) known(takes string) error {
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

// reply answers with JSON.
func (c *call) reply(status int, v any) error { return writeJSON(c.w, status, v) }

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
func (c *call) getPage() error {
	switch {
	case c.Page != nil:
		c.Page.ServeHTTP(c.w, c.r)
		return nil
	case c.r.URL.Path == "/":
		return c.getHint()
	}
	return &refused{http.StatusNotFound, "not_found", "this was built without its page (run `make web`, then build it)"}
}

// getHint tells a person who came with a browser what this is.
func (c *call) getHint() error {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintf(c.w, "Tidemark %s: a chat backend whose conversations never end and never forget.\n\nSay something:\n  curl http://%s/v1/sessions/main/messages -d '{\"text\":\"hello\"}'\n\nThe routes are in docs/http.md.\n", c.Version, c.r.Host)
	return err
}
