package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/snapshot"
	"github.com/tidemark-ai/tidemark/transcript"
)

// DefaultHookTokens is the size of a context from which on a trimmed branch is prepared: it leaves time to go over to
// it before Claude Code compacts by itself, near 160,000 of 200,000.
const DefaultHookTokens tidemark.Tokens = 120_000

// Bounds of a hook.
const (
	maxHookInput = 64 << 20  // bytes; the results of tools are in it
	hookTail     = 256 << 10 // of a log's end that are read at first
	maxHookTail  = 16 << 20  // behind results that fill more, no size is known
	hookTailStep = 4
	// growth is by how much a context has to grow before another branch is prepared: a quarter. Without it each call
	// of a tool over the size would make one.
	growthOver, growthPart = 5, 4
	// gainOver of gainPart is what a trim must leave at most to be worth a branch.
	gainOver, gainPart = 4, 5
)

// AutoTag marks snapshots that a hook took.
const AutoTag = "auto"

// Hook does what Claude Code calls us for. It never writes to the log of a session: before a compaction it takes a
// snapshot, and of a large context a snapshot and a trimmed branch, to which the user may go over.
type Hook struct {
	Store  *Store
	Tokens tidemark.Tokens // 0 is DefaultHookTokens
}

// HookOutput is the answer to Claude Code, which shows the message to the user.
type HookOutput struct {
	Message string `json:"systemMessage,omitempty"`
	Quiet   bool   `json:"suppressOutput"`
}

// hookInput is what Claude Code says.
type hookInput struct {
	Session string `json:"session_id"`
	Path    string `json:"transcript_path"`
	Event   string `json:"hook_event_name"`
	Trigger string `json:"trigger"` // of a compaction: manual or auto
	CWD     string `json:"cwd"`
}

// hookState is what is remembered of a session, so that not every call makes a branch.
type hookState struct {
	Tokens   tidemark.Tokens `json:"tokens"` // of the context when the last branch was prepared, or found not to be worth it
	Snapshot string          `json:"snapshot,omitempty"`
	Branch   string          `json:"branch,omitempty"`
	At       time.Time       `json:"at"`
}

// Run reads the input of one hook and does what its event asks for. An empty output is nothing to say. Whatever fails,
// the session goes on: who calls says so and exits with 0.
func (h Hook) Run(ctx context.Context, in io.Reader) (HookOutput, error) {
	out := HookOutput{Quiet: true}
	raw, err := io.ReadAll(io.LimitReader(in, maxHookInput+1))
	if err != nil {
		return out, fmt.Errorf("read input of hook: %w", err)
	}
	var input hookInput
	if len(raw) > maxHookInput {
		return out, fmt.Errorf("read input of hook: over %d bytes: %w", maxHookInput, tidemark.ErrTooLarge)
	}
	if err := json.Unmarshal(raw, &input); err != nil {
		return out, fmt.Errorf("read input of hook: %w: %w", err, tidemark.ErrInvalid)
	}
	of, err := h.session(input)
	if err != nil {
		return out, fmt.Errorf("hook %.40q: %w", input.Event, err)
	}
	switch input.Event {
	case EventPreCompact:
		out.Message, err = h.preCompact(ctx, of, input.Trigger)
	case EventPostToolUse:
		out.Message, err = h.postToolUse(ctx, of)
	default:
		err = fmt.Errorf("want %s or %s: %w", EventPreCompact, EventPostToolUse, tidemark.ErrInvalid)
	}
	if err != nil {
		return out, fmt.Errorf("hook %.40q: %w", input.Event, err)
	}
	return out, nil
}

// session is the log that a hook is for: one of the logs of Claude Code, named as its session is.
func (h Hook) session(in hookInput) (Session, error) {
	if err := checkSessionID(in.Session); err != nil {
		return Session{}, err
	}
	projects, err := filepath.EvalSymlinks(filepath.Join(h.Store.Dir, projectsName))
	if err != nil {
		return Session{}, fmt.Errorf("transcript_path: there are no projects in %s: %w", h.Store.Dir, tidemark.ErrNotFound)
	}
	path, err := filepath.EvalSymlinks(in.Path)
	if err != nil {
		return Session{}, fmt.Errorf("transcript_path %.200q: is not there: %w", in.Path, tidemark.ErrNotFound)
	}
	rel, err := filepath.Rel(projects, path)
	if err != nil || !filepath.IsLocal(rel) || strings.Count(filepath.ToSlash(rel), "/") != 1 || filepath.Base(path) != in.Session+logSuffix {
		return Session{}, fmt.Errorf("transcript_path %.200q: is not the log of session %s below %s: %w", in.Path, in.Session, projects, tidemark.ErrInvalid)
	}
	s, err := h.Store.Finder().look(path)
	if err == nil && s.Project == "" && filepath.IsAbs(in.CWD) && isFolder(in.CWD) {
		s.Project = canonical(in.CWD) // a log whose lines name no folder
	}
	return s, err
}

// preCompact keeps the conversation as it is before it is summed up. The same content is kept once.
func (h Hook) preCompact(ctx context.Context, of Session, trigger string) (string, error) {
	about := "before compaction"
	if trigger == "auto" || trigger == "manual" {
		about = "before " + trigger + " compaction"
	}
	node, err := h.Store.snapshot(ctx, of, SnapshotOptions{Name: named(about, h.Store.now()), Tags: []string{AutoTag}}, anyNode)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Tidemark keeps this conversation as it is before the compaction: `tidemark branch %s` goes on from here.", node.ID), nil
}

func anyNode(snapshot.Node) bool { return true }

// postToolUse prepares a trimmed branch when the context is large, and has grown since the last one.
func (h Hook) postToolUse(ctx context.Context, of Session) (string, error) {
	limit := h.Tokens
	if limit <= 0 {
		limit = DefaultHookTokens
	}
	tokens, err := contextOf(of.Path)
	if err != nil || tokens < limit || !h.due(of.ID, tokens) {
		return "", err
	}
	// Calls of tools run side by side, and so do their hooks: one of them does it.
	if err := os.MkdirAll(filepath.Dir(h.statePath(of.ID)), folderMode); err != nil {
		return "", err
	}
	lock := flock.New(h.statePath(of.ID)+".lock", flock.SetPermissions(fileMode))
	defer func() { _ = lock.Close() }()
	if ok, err := lock.TryLock(); !ok {
		return "", err
	}
	if !h.due(of.ID, tokens) {
		return "", nil
	}
	state := hookState{Tokens: tokens, At: h.Store.now()}
	message, failed := h.prepare(ctx, of, &state)
	// What failed is tried again when the context has grown, not at each call.
	raw, err := json.Marshal(state)
	if err == nil {
		err = replaceFile(h.statePath(of.ID), raw, fileMode)
	}
	return message, errors.Join(failed, err)
}

// prepare makes the branch, and the snapshot that it is made of, unless a trim leaves nearly as much: then nothing is kept.
func (h Hook) prepare(ctx context.Context, of Session, state *hookState) (string, error) {
	_, tried, err := h.Store.tryTrim(ctx, of, SnapshotOptions{}, BranchOptions{Trim: true, DryRun: true})
	if err != nil {
		return "", err
	}
	if m := tried.Trim; m.LiveTokensAfter*gainPart > m.LiveTokensBefore*gainOver {
		return "", nil
	}
	node, err := h.Store.snapshot(ctx, of, SnapshotOptions{Name: named("before trim", h.Store.now()), Tags: []string{AutoTag}}, anyNode)
	if err != nil {
		return "", err
	}
	state.Snapshot = node.ID
	b, err := h.Store.Branch(ctx, node.ID, BranchOptions{Name: named("trimmed", h.Store.now()), Trim: true})
	if err != nil {
		return "", err
	}
	state.Branch = b.Session
	return fmt.Sprintf("Tidemark: this conversation fills %d tokens. A trimmed copy as of now is ready, of about %d; to go on there, leave and run: %s --resume %s. The whole is kept as snapshot %s.",
		state.Tokens, b.Node.Tokens, program, b.Session, node.ID), nil
}

func (h Hook) statePath(session string) string {
	return filepath.Join(h.Store.folder(), "hooks", session+".json")
}

// due reports whether a context has grown by a quarter since the last branch. One that is smaller than then was
// compacted, and begins anew.
func (h Hook) due(session string, tokens tidemark.Tokens) bool {
	const most = 64 << 10
	raw, _, err := readSmall(h.statePath(session), most)
	if err != nil {
		return true
	}
	var last hookState
	if json.Unmarshal(raw, &last) != nil {
		return true
	}
	return tokens*growthPart >= last.Tokens*growthOver || tokens*growthOver < last.Tokens*growthPart
}

// contextOf is the size of a context by the end of its log alone: this runs at every call of a tool. It goes further back
// only while it met nothing but results: those of a few screenshots fill a megabyte. 0 is not known.
func contextOf(path string) (tidemark.Tokens, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	for back := int64(hookTail); ; back *= hookTailStep {
		from := max(0, info.Size()-back)
		m, err := meterFrom(f, from, info.Size())
		if err != nil {
			return 0, err
		}
		if m.sent != 0 {
			return m.tokens(), nil
		}
		if from == 0 || back >= maxHookTail {
			return 0, nil
		}
	}
}

// meterFrom reads the lines that begin behind a place in a log.
func meterFrom(log io.ReaderAt, from, size int64) (*meter, error) {
	m := &meter{}
	for l, err := range transcript.Lines(io.NewSectionReader(log, from, size-from), transcript.Options{}) {
		if err != nil {
			return m, err
		}
		if from == 0 || l.Offset > 0 { // the first one began before
			m.add(l)
		}
	}
	return m, nil
}
