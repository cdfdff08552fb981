// Package room says what a session and its rooms know of each other. A room is what a conversation has beside its core,
// in a package of its own with its own tables: it holds [Ports], and takes part in the turn through the interfaces below,
// which a session finds by type assertion. Begin with Ports, then with room/task, which has one of each.
package room

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
	"github.com/tidemark-ai/tidemark/snapshot"
)

// Ports is what a room may use of its session, by noun: a room holds those that it uses.
type Ports struct {
	Self
	History
	Work
	Mail
	View
	Voice
	Turns
	Finding
	Past Past
}

// Self is the conversation, and what every room needs.
type Self struct {
	Key     tidemark.Key
	DB      tidemark.DB
	Made    *Made // of the tables in DB
	Runtime tidemark.Runtime
	Life    context.Context // ends with the session
	// Zone is where the agent is.
	Zone func() *time.Location
	// MayChange reports whether what somebody says may change the conversation.
	MayChange func(o tidemark.Origin) bool
	// Warn logs a failure that nobody waits for; Observe counts something for metrics, and how it went: both are names.
	Warn    func(what string, err error)
	Observe func(kind, how string, count int)
	Logger  *slog.Logger
}

// History is what was said.
type History struct {
	Log *host.Log
	// Current returns the id of the log that the conversation stands in.
	Current func(ctx context.Context) (string, error)
	// Segments returns a log and those that it continues as a branch.
	Segments func(ctx context.Context, log string) (map[string]bool, error)
	// Reaches reports whether an entry is of this conversation.
	Reaches func(ctx context.Context, e tidemark.Entry) (bool, error)
	// Logs returns the logs of the conversation, newest first.
	Logs func(ctx context.Context) ([]string, error)
	// Settled is the position up to which it is decided which turns recall finds.
	Settled func(ctx context.Context) (int64, error)
	// Texts gives those of some messages to use that recall finds, each with its text or the beginning of a long one.
	Texts func(ctx context.Context, seqs []int64, use func(e tidemark.Entry, text string)) error
	// Words reads a message of an entry without large blocks that have no words. done gives back the memory that it holds.
	Words func(ctx context.Context, e tidemark.Entry) (m tidemark.Message, done func(), err error)
	// MarksOf is what rooms know of some entries, see Marker.
	MarksOf func(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]Mark, error)
	// Announce writes an event with what else is to be written, and tells it to who listens.
	Announce func(ctx context.Context, log string, e tidemark.Event, stmts ...tidemark.Stmt) error
	// Note appends a message to a log in which no turn is in work, with an event and what else is written before it, and
	// tells both; tidemark.ErrConflict where a turn is, or a message came meanwhile.
	Note func(ctx context.Context, log string, e tidemark.Entry, m tidemark.Message, ev tidemark.Event, stmts ...tidemark.Stmt) error
}

// Work is what is done later; see Waker.
type Work struct {
	// Due and Undue return what makes a kind of work due at a time, and what ends that.
	Due   func(kind string, at time.Time, data string) tidemark.Stmt
	Undue func(kind string) tidemark.Stmt
	// Alarm has the host wake the session for what is due.
	Alarm func(ctx context.Context)
}

// Mail is what the agent is told; see Reporter.
type Mail struct {
	// Agent is who owns the session: what it can take is found by type assertion.
	Agent any
	// Outbox returns what keeps something for the agent until it has it, once for an id, and tells it after a while; Tell tells
	// it at once.
	Outbox func(id, kind string, payload any, after time.Duration) []tidemark.Stmt
	Tell   func(ctx context.Context)
}

// View is what the model sees, and how it is made smaller.
type View struct {
	// EvictedAt is when an entry of the present session left the view, the zero time if it is there.
	EvictedAt func(ctx context.Context, id tidemark.EntryID) (time.Time, error)
	// Strategies and Limit are how the view is made smaller, and when.
	Strategies func() []compaction.Strategy
	Limit      func() tidemark.Tokens
	// NoteRoom returns the tokens that a room may push, and those with what must be heeded, however little is left.
	NoteRoom func() (rest, all tidemark.Tokens)
}

// Voice is what people are told.
type Voice struct {
	// Event and Lines return what appends an event to a log, and what sends a text to those who said something.
	Event func(log string, e tidemark.Event) tidemark.Stmt
	Lines func(ctx context.Context, log string, to []tidemark.Origin, text string) ([]tidemark.Stmt, error)
	// Say sends a text, and logs an event, once for an id.
	Say func(ctx context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error
	// Happened tells those who listen of an event that is written, Rests that a run waits for the owner.
	Happened func(run string, e tidemark.Event)
	Rests    func(run string, list []tidemark.Question, text string)
}

// Turns is the run in work.
type Turns struct {
	// Busy reports whether one works in this life.
	Busy func() bool
	// GoOn returns what makes a run due that rests, and the present log; tidemark.ErrConflict when it is written and the
	// run has ended, or was stopped. Resume takes it up at once.
	GoOn   func(ctx context.Context, run string) (log string, stmts []tidemark.Stmt, err error)
	Resume func()
}

// Past is what a room may ask of the snapshots of its conversation.
type Past struct {
	// May refuses what is of snapshots where a client keeps the history itself.
	May func() error
	// Find returns a snapshot by its id, and Node the node of one or of a branch; an unknown one is tidemark.ErrNotFound.
	Find func(ctx context.Context, id string) (Place, error)
	Node func(ctx context.Context, id string) (snapshot.Node, error)
	// Branch returns the node of the branch that a log is of; none is tidemark.ErrNotFound.
	Branch func(ctx context.Context, log string) (snapshot.Node, error)
	// Taken returns the id of the first snapshot at a position of a log, "" for none.
	Taken func(ctx context.Context, log string, seq int64) (string, error)
}

// Place is a snapshot, and where it ends.
type Place struct {
	snapshot.Node
	Log   string
	Seq   int64
	State State // of rooms, as it was there
}

// Maker makes a room of a session that is opened.
type Maker func(Ports) any

// Tabler is a room with tables of its own.
type Tabler interface{ Tables() Tables }

// Tools is a room with tools for the model.
type Tools interface {
	// Tools lists them; pointing says that what leaves the view leaves pointers.
	Tools(pointing bool) []tidemark.Tool
	// Call carries out a call of one of them; failures are results with is_error.
	Call(ctx context.Context, c Call) tidemark.Block
}

// Call is a call of a tool of a room.
type Call struct {
	ID      string // that the result answers
	Input   []byte
	By      string // run, round and number: the same when it is carried out again
	Log     string
	Origins []tidemark.Origin // of whom the turn answers
	Fence   tidemark.Stmt     // holds while the run works on it
	// May refuses a search, or to read something again, when the turn had as much of that as it may have.
	May func(ctx context.Context, search bool) error
	// Begun is the position of the first message of the turn, 0 when it has none.
	Begun func(ctx context.Context) (int64, error)
}

// Gate is a room that says which calls of tools may run.
type Gate interface {
	// Judge says of a call whether it may; others says that the tool is of others.
	Judge(tool string, input []byte, others bool) Ruling
	// Asked returns what became of the calls of a round that somebody was asked about, by their number.
	Asked(ctx context.Context, run string, round int) (map[int]Ruling, error)
	// Ask returns what asks about calls, and until when the first of them waits.
	Ask(ctx context.Context, t Turn, calls []Waiting) (Done, time.Time, error)
	// Parked returns a run that waits for an answer, "" for none.
	Parked(ctx context.Context) (run string, err error)
	// Close returns what ends the questions of a run that ends before they are answered.
	Close(ctx context.Context, run string) ([]tidemark.Stmt, error)
}

// Ruling is what becomes of a call. The zero value lets it run.
type Ruling struct {
	Waits   bool   // for an answer
	Refused string // why it does not run, as the model reads it
}

// Turn is a turn at a round of calls.
type Turn struct {
	Run, Log string
	Round    int
	Origins  []tidemark.Origin
}

// Waiting is a call that waits, by its number in its round.
type Waiting struct {
	N     int
	Tool  string
	Input []byte
}

// Commander is a room that carries out words that people type after a slash, see tidemark.Commands: at once, not behind
// what waits.
type Commander interface {
	// Commands lists its words.
	Commands() []string
	// Command returns what carries one out; what is refused is told in words.
	Command(ctx context.Context, word, text string, o tidemark.Origin) (Done, error)
}

// Done is what an act of a room comes to.
type Done struct {
	Text  string // the answer, where no run has it
	Run   string // that the command joins and lets go on
	Stmts []tidemark.Stmt
	Then  func() // when they are written
}

// Hearer is a room that is there when somebody writes.
type Hearer interface {
	// Reads returns the command that a text is for the room, "" for none.
	Reads(ctx context.Context, text string, o tidemark.Origin) (line string, err error)
	// Ahead returns what waits before what somebody wrote, "" for nothing.
	Ahead(ctx context.Context, o tidemark.Origin) string
}

// Pusher is a room that has something for the note beside the messages of a call, within some tokens; see
// Ports.NoteRoom. Empty is nothing.
type Pusher interface {
	Push(ctx context.Context, rest, all tidemark.Tokens) (string, error)
}

// Parted is a room of several parts, each of which takes part by itself.
type Parted interface{ Parts() []any }

// Holder is a room that keeps entries in view.
type Holder interface {
	// Pinned returns the entries of a log, and of what it continues, that stay in view.
	Pinned(ctx context.Context, log string) (map[tidemark.EntryID]bool, error)
	// PinStmts returns what pins entries on behalf of the model.
	PinStmts(ctx context.Context, log string, ids []tidemark.EntryID) ([]tidemark.Stmt, error)
}

// Marker is a room that knows what is worked on, and something of single entries.
type Marker interface {
	// Working returns what the conversation works on, the zero Task when nobody says.
	Working(ctx context.Context) (recall.Task, error)
	// Marks returns what is known of some entries; those of which nothing is are absent.
	Marks(ctx context.Context, ids []tidemark.EntryID) (map[tidemark.EntryID]Mark, error)
}

// Mark is what is known of an entry beside what it holds.
type Mark struct {
	Premise      string           // that held when it was logged; empty when none was known
	Task         string           // that was worked on then
	SupersededBy tidemark.EntryID // the entry that holds in its place
	Pinned       bool
	Importance   int // 1 to 10; 0 is that of its kind
}

// Keeper is a room that keeps what a snapshot has as it was.
type Keeper interface {
	// State returns what is kept now of messages up to a position; past says that newer ones are there.
	State(ctx context.Context, upTo int64, past bool) (State, error)
	// Restore returns what gives a new session the state that a snapshot of another one has.
	Restore(ctx context.Context, to tidemark.Key, from string, upTo int64, s State) ([]tidemark.Stmt, error)
}

// Opener is a room with something to do when its session is opened.
type Opener interface {
	Open(ctx context.Context) error
}

// Ender is a room that writes something in the transaction that ends a turn.
type Ender interface {
	EndStmts() []tidemark.Stmt
}

// Waker is a room that does what is due.
type Waker interface {
	// Wakes is the kind of due work that is the room's own.
	Wakes() string
	Wake(ctx context.Context) error
}

// Worker is a room that may be at work while no turn is: its session is not forgotten meanwhile.
type Worker interface {
	Working() bool
}

// Reporter is a room that tells the agent what it put into the outbox.
type Reporter interface {
	// Reports is the kind in the outbox that is the room's own.
	Reports() string
	Report(ctx context.Context, payload []byte) error
}

// Teller is a room that tells the agent more when it has a report.
type Teller interface {
	// ToldStmts returns what is written with the end of a report, and Told is called behind it.
	ToldStmts() []tidemark.Stmt
	Told(ctx context.Context)
}

// Closer is a room with something to do at once when a reset or an import ended what was said before.
type Closer interface {
	Closed(ctx context.Context)
}

// Recaller is a room that is told how recalls go: by whom, with which verdict, and the first find.
type Recaller interface {
	Recalled(ctx context.Context, by string, v recall.Verdict, first tidemark.EntryID)
}

// Who recalls something.
const (
	ByModel  = "model"
	ByPerson = "person"
	ByPack   = "pack" // pushed without being asked for, so a miss tells nothing
	ByWide   = "wide" // by the model over many conversations: what it misses was in nobody's view
)

// Compactor is a room that says how compactions are made, and is told of each.
type Compactor interface {
	Tune(ctx context.Context, list []compaction.Strategy) ([]compaction.Strategy, error)
	Compacted(ctx context.Context, log string, edits []tidemark.Edit)
}

// Finder is a room that finds messages by more than their words, by position. told says how that went, for who asked.
type Finder interface {
	Near(ctx context.Context, query string, in *Lineage) (near map[int64]recall.Stand, told string)
}

// MaxNear bounds the messages that a Finder adds to those that words find.
const MaxNear = 16

// DueVectors is the kind of work that a wake does behind all else: making vectors, see room/vectors.
const DueVectors = "embed"

// NoticeVectors is observed when an endpoint was asked for vectors.
const NoticeVectors = "vectors"

// Cooldowns are the pauses behind one failure, two, and more.
var Cooldowns = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// State is what a session keeps beside its log and changes: its card, and which messages are pinned or superseded. What
// is derived from the messages is derived again.
type State struct {
	Card    json.RawMessage `json:"card,omitempty"`
	Version int64           `json:"version,omitempty"`
	Marks   []StateMark     `json:"marks,omitempty"`
}

// StateMark is what a State has of a message.
type StateMark struct {
	ID         string `json:"id"`
	Pinned     int64  `json:"pinned,omitempty"`
	Superseded string `json:"superseded,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Pins are the entries that stay whole.
func (s State) Pins() map[tidemark.EntryID]bool {
	out := map[tidemark.EntryID]bool{}
	for _, m := range s.Marks {
		if m.Pinned > 0 {
			out[tidemark.EntryID(m.ID)] = true
		}
	}
	return out
}

// TaskTool is the name of the tool of room/task: what it answers stands in the log, or on the card, already.
const TaskTool = "task_state"

// Harmless breaks the tags that agents put around reminders, which a model would take for words of the
// program.
func Harmless(s string) string {
	return strings.NewReplacer("<system-reminder", "&lt;system-reminder", "</system-reminder", "&lt;/system-reminder").Replace(s)
}

// JSON encodes values of ours, which always encode.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return string(raw)
}
