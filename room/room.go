// Package room says what a session and its rooms know of each other. A room is what a conversation has beside its core,
// in a package of its own with its own tables: it holds [Ports], and takes part in the turn through the interfaces below,
// which a session finds by type assertion. Begin with Ports, then with room/task, which has one of each.
package room

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/recall"
)

// Ports is what a room may use of its session, by noun: a room holds those that it uses.
type Ports struct {
	Self
	History
	Work
	Mail
	View
	Voice
	Channels
	Turns
	Lease
	Queue
	Allowance
	Past
	Finding
	Blocks
	Records
	Checks
	Toolbox tidemark.Toolbox // of others, nil for none
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
	// Info is what the directory shows of the conversation.
	Info func(ctx context.Context) (tidemark.SessionInfo, error)
	// Counts is what stands in a log itself.
	Counts func(ctx context.Context, log string) (Counts, error)
	// Settled is the position up to which it is decided which turns recall finds.
	Settled func(ctx context.Context) (int64, error)
	// Texts gives those of some messages to use that recall finds, each with its text or the beginning of a long one.
	Texts func(ctx context.Context, seqs []int64, use func(e tidemark.Entry, text string)) error
	// Entry returns a message of this conversation whole; one of another is tidemark.ErrNotFound.
	Entry func(ctx context.Context, id tidemark.EntryID) (tidemark.Message, error)
	// Messages yields the messages of a part of a log whole, in order.
	Messages func(ctx context.Context, log string, r host.Range) iter.Seq2[tidemark.Entry, error]
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

// Counts is how much stands in a log, messages among the entries, and how many parts of it in the archive.
type Counts struct{ Entries, Messages, Parts int }

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
	// Seen is what the model would see of a log now.
	Seen func(ctx context.Context, log string) (Seen, error)
	// Strategies and Budget are how the view is made smaller, and when.
	Strategies func() []compaction.Strategy
	Budget     func() compaction.Budget
	// NoteRoom returns the tokens that a room may push, and those with what must be heeded, however little is left.
	NoteRoom func() (rest, all tidemark.Tokens)
	// PackTokens is the budget that what is pushed beside the view has its shares of, 0 where nothing is; see Packer.
	PackTokens func() tidemark.Tokens
	// Windows are what the view has to fit.
	Windows Windows
}

// Voice is what those who listen are told.
type Voice struct {
	// Event returns what appends an event to a log.
	Event func(log string, e tidemark.Event) tidemark.Stmt
	// Happened tells those who listen of an event that is written, Rests that a run waits for the owner.
	Happened func(run string, e tidemark.Event)
	Rests    func(run string, list []tidemark.Question, text string)
}

// Channels is how people are told something over channels; see Teller.
type Channels struct {
	// Lines returns what sends a text to those who said something.
	Lines func(ctx context.Context, log string, to []tidemark.Origin, text string) ([]tidemark.Stmt, error)
	// Say sends a text, and logs an event, once for an id.
	Say func(ctx context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error
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
	Turn
	N     int    // of the call in its round
	ID    string // that the result answers
	Tool  string
	Input []byte
	Fence func() tidemark.Stmt // returns what holds while the run works on the call
	// May refuses a search, or to read something again, when the turn had as much of that as it may have.
	May func(ctx context.Context, search bool) error
	// Begun is the position of the first message of the turn, 0 when it has none.
	Begun func(ctx context.Context) (int64, error)
}

// Place names a call by its place in the run: the same when it is carried out again.
func (c Call) Place() string { return fmt.Sprintf("%s/%d/%d", c.Run, c.Round, c.N) }

// Canceller is a room of which calls of tools go on elsewhere.
type Canceller interface {
	// Cancel ends what a call began that has no result, before its run ends. It may be a call of any tool.
	Cancel(ctx context.Context, c Call)
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
	Origins  []tidemark.Origin // of whom it answers
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

// Answerer is a room that answers words that people type after a slash, each in its turn, behind what waits; see Commander.
type Answerer interface {
	// Answers lists its words.
	Answers() []string
	// Answer carries one out; tidemark.ErrForbidden where that is for the owner alone.
	Answer(ctx context.Context, a Asked) (string, error)
}

// Asked is a word that somebody typed.
type Asked struct {
	Word, Text string
	Owner      bool      // they are the owner
	ID         string    // of the input, the same when it is carried out again; "" where it is not known
	At         time.Time // when it came
}

// Done is what an act of a room comes to.
type Done struct {
	Text  string // the answer, where no run has it
	Run   string // that the command joins and lets go on
	Stmts []tidemark.Stmt
	Then  func() // when they are written
}

// Briefer is a room that says something to the model, behind what the system prompt is made of. Empty is nothing.
type Briefer interface{ Brief() string }

// Reader is a room that reads messages of other conversations, as results of its tool name them.
type Reader interface {
	// Read returns a page of the text of a message, from an offset in bytes on.
	Read(ctx context.Context, name string, offset int) (string, error)
}

// Hearer is a room that is there when somebody writes.
type Hearer interface {
	// Reads returns the command that a text is for the room, "" for none.
	Reads(ctx context.Context, text string, o tidemark.Origin) (line string, err error)
	// Ahead returns what waits before what somebody wrote, "" for nothing.
	Ahead(ctx context.Context, o tidemark.Origin) string
}

// Teller is a room that tells people over channels what is said to them.
type Teller interface {
	// Lines returns what sends a text to those who wrote some inputs, but not to the readers in except; see
	// tidemark.Origin.Reader.
	Lines(ctx context.Context, log string, from []tidemark.Origin, text string, except ...string) ([]tidemark.Stmt, error)
	// Dispatch sends what is written. It returns at once.
	Dispatch()
	// Say sends a line that is no part of the conversation, and logs an event, once for an id; to and e may be nil.
	Say(ctx context.Context, id string, to *tidemark.Address, text string, e *tidemark.Event) error
	// Typing returns what shows those who wrote some inputs that a run answers them, until ctx, the run's, ends.
	Typing(ctx context.Context) func(to []tidemark.Origin)
	// Unsent counts the messages that people do not have yet.
	Unsent(ctx context.Context) (int64, error)
}

// Addressee is a room that knows what people wrote over channels.
type Addressee interface {
	// Wrote returns what notes that somebody wrote, and lets go of what waited for that. An origin without a Message is of
	// what nobody can answer.
	Wrote(ctx context.Context, o tidemark.Origin, text string) ([]tidemark.Stmt, error)
	// Quoted returns the line for the model that says which message somebody answers, by the platform's id of it.
	Quoted(ctx context.Context, message string) (line string, err error)
	// Amended returns what has who answers a message quote what it reads now.
	Amended(message, text string) []tidemark.Stmt
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

// Brancher is a room that makes branches.
type Brancher interface {
	// BaseArchived is how far the archives of what a log continues as a branch held its history when it began.
	BaseArchived(ctx context.Context, log string) (int64, error)
}

// Opener is a room with something to do when its session is opened.
type Opener interface {
	Open(ctx context.Context) error
}

// Ender is a room that writes something in the transaction that ends a turn.
type Ender interface {
	EndStmts() []tidemark.Stmt
}

// Concluder is a room that writes down what came of a run, in the transaction that ends it.
type Concluder interface {
	OutcomeStmts(ctx context.Context, t Turn, out tidemark.Outcome) []tidemark.Stmt
}

// Pruner is a room that lets go of what is old, in the transaction of a reset.
type Pruner interface {
	PruneStmts() []tidemark.Stmt
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

// Informer is a room that tells the agent more when it has a report.
type Informer interface {
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
	Near(ctx context.Context, query string, in *host.Lineage) (near map[int64]recall.Stand, told string)
}

// MaxNear bounds the messages that a Finder adds to those that words find.
const MaxNear = 16

// DueVectors is the kind of work that a wake does behind all else: making vectors, see room/vectors.
const DueVectors = "embed"

// DueOutbound is the kind of work that sends what is pending, see room/outbound. DueUnset is its data while that waits for a
// channel which is not set up: a process that has it looks at once. Nothing waits longer than FarPause: the clock that says so
// was ahead.
const (
	DueOutbound = "out"
	DueUnset    = "unset"
	FarPause    = 25 * time.Hour
)

// NoticeVectors is observed when an endpoint was asked for vectors.
const NoticeVectors = "vectors"

// Cooldowns are the pauses behind one failure, two, and more.
var Cooldowns = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// TaskTool is the name of the tool of room/task: what it answers stands in the log, or on the card, already.
const TaskTool = "task_state"

// DelegateTool is the name of the tool of room/delegation.
const DelegateTool = "delegate"

// Wordless is what is read of an answer that has no text: there is nothing else of a turn to be seen.
const Wordless = "(The answer has no text.)"

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
