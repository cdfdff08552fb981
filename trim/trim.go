// Package trim makes the session log of another tool smaller without losing a word that a person or the model said: raw
// outputs of tools, images, thinking and bookkeeping go, and what remains is a history that the API takes (papers/cmv
// §3). Finding logs and putting the result in their place is for package claude, prices for package cost. Begin with
// [Trim]; what goes is told to a [Sink], so that every cut can be undone.
//
// Lines that no rule changes are copied byte for byte; the result passes the rules of the Messages API whatever the log
// was; one line stands in memory at a time, and of each live line some hundred bytes of what decides about it.
package trim

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/calls"
)

// The threshold over which outputs and inputs of tools are replaced by a stub, in UTF-16 units, as the known
// implementation counts them.
const (
	DefaultThreshold = calls.DefaultThreshold
	MinThreshold     = calls.MinThreshold
)

// Options direct a trim. The zero value is good.
type Options struct {
	Threshold int    // 0 is DefaultThreshold; 1 up to MinThreshold act as MinThreshold
	How       string // what a stub says to do to get its original back, before the handle; "" for nothing, and over 160 characters only "handle"
}

// Metrics say what a trim did. The first twelve are those of the known implementation, counted as it does.
type Metrics struct {
	OriginalBytes             int64 `json:"originalBytes"`
	TrimmedBytes              int64 `json:"trimmedBytes"`
	ToolResultsStubbed        int64 `json:"toolResultsStubbed"`
	SignaturesStripped        int64 `json:"signaturesStripped"` // thinking blocks, redacted ones too
	FileHistoryRemoved        int64 `json:"fileHistoryRemoved"`
	ImagesStripped            int64 `json:"imagesStripped"`
	ToolUseInputsStubbed      int64 `json:"toolUseInputsStubbed"`      // calls, not fields
	PreCompactionLinesSkipped int64 `json:"preCompactionLinesSkipped"` // that are not blank
	QueueOperationsRemoved    int64 `json:"queueOperationsRemoved"`
	UserMessages              int64 `json:"userMessages"`       // lines
	AssistantResponses        int64 `json:"assistantResponses"` // lines
	ToolUseRequests           int64 `json:"toolUseRequests"`

	OrphansRemoved   int64           `json:"orphansRemoved"`   // results without a live call before them, repeated ones too
	CallsRepaired    int64           `json:"callsRepaired"`    // calls without a result, which have one now that says so
	LiveTokensBefore tidemark.Tokens `json:"liveTokensBefore"` // an estimate of the live messages; system prompt and tools come on top
	LiveTokensAfter  tidemark.Tokens `json:"liveTokensAfter"`

	CopiesStubbed  int64 `json:"copiesStubbed"`  // copies of results beside the messages (toolUseResult)
	LinesEmptied   int64 `json:"linesEmptied"`   // lines that had nothing left, and are gone
	LinesRelinked  int64 `json:"linesRelinked"`  // whose parent is another line now
	LinesPreserved int64 `json:"linesPreserved"` // before the boundary, that a compaction names as kept
	LinesUnread    int64 `json:"linesUnread"`    // that are no JSON, or longer than scan.MaxLine, copied as they stand
}

// Cut is one change on the way from the log to its trimmed form: at a place of the output, Put bytes were written in
// the place of the input's bytes From up to To. What lies between two cuts is copied. Cuts come in the order of the
// input, and of the output.
type Cut struct {
	From, To int64  // of the input
	Put      int64  // bytes of the output
	Handle   string // what the stub calls the original, "" where nothing stands for it
}

// Sink is told each cut before the output that lies behind it is written. It may read the input meanwhile.
type Sink interface {
	Cut(c Cut) error
}

// Trim writes the trimmed form of the first size bytes of a log. in must not change up to there; what is appended
// behind is none of its concern. cuts may be nil.
//
// # Errors
//
// tidemark.ErrTooLarge for a log with more messages than its tables may hold, and errors of in, out and cuts. What
// was written to out by then is no log.
func Trim(ctx context.Context, in io.ReaderAt, size int64, out io.Writer, cuts Sink, o Options) (Metrics, error) {
	m, err := trim(reading{ctx: ctx, in: in, size: size}, out, cuts, o)
	if err != nil {
		return Metrics{}, fmt.Errorf("trim: %w", err)
	}
	return m, nil
}

func trim(r reading, out io.Writer, cuts Sink, o Options) (Metrics, error) {
	r.threshold = int64(o.Effective())
	v, err := r.look()
	if err != nil {
		return Metrics{}, err
	}
	l := &ledger{facts: v.facts}
	if err := l.decide(r.ctx); err != nil {
		return Metrics{}, err
	}
	w := newWriter(r, out, cuts, l, o.How)
	if err := w.write(v.from); err != nil {
		return Metrics{}, err
	}
	w.m.PreCompactionLinesSkipped = v.before - w.m.LinesPreserved
	return w.m, nil
}
