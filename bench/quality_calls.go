package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// What a record of a call is.
const (
	kindAnswer  = "answer"
	kindVerdict = "verdict"
)

// The two conditions of a pair.
const (
	condFull    = "full"
	condManaged = "managed"
)

// Saved is what came of a call: enough not to make it again.
type Saved struct {
	Text  string         `json:"text"`
	Stop  string         `json:"stop,omitempty"`
	Calls int            `json:"calls,omitempty"` // of tools, in an answer
	Usage tidemark.Usage `json:"usage"`
}

// QualityRecord is one call as a line of JSON. Key is the SHA-256 of all that was asked, so a run with other
// settings uses only those that it would make alike, such as the answers with the whole context.
type QualityRecord struct {
	Kind      string `json:"kind"` // answer, verdict
	Key       string `json:"key"`
	Session   string `json:"session"`
	Request   int    `json:"request"`
	Strategy  string `json:"strategy,omitempty"`
	Condition string `json:"condition,omitempty"` // of an answer: full, managed
	Judge     int    `json:"judge,omitempty"`     // from 1
	A         string `json:"a,omitempty"`         // the condition that the judge saw as A
	Model     string `json:"model"`
	Saved
	Score   map[string]map[string]int `json:"score,omitempty"` // by condition and criterion
	Better  string                    `json:"better,omitempty"`
	Less    string                    `json:"less_context,omitempty"`
	Invalid string                    `json:"invalid,omitempty"` // why a verdict does not count
}

// recordHead is how a record begins: what is cut off at the end of a file is one, or not ours.
const recordHead = `{"kind":"`

// Bounds of a file of records.
const (
	maxRecord  = 1 << 20
	maxRecords = 20_000 // four strategies over 1,000 pairs; each holds an answer
)

// ReadCalls reads records of earlier runs by their keys. whole is where the last line ends that has an
// end: what a run that was killed left behind it is to be cut off. A line that is no record is
// tidemark.ErrInvalid and named.
func ReadCalls(r io.Reader) (have map[string]Saved, whole int64, err error) {
	have = map[string]Saved{}
	in := bufio.NewReaderSize(r, 1<<20)
	for number := 1; ; number++ {
		line, err := boundedLine(in)
		if errors.Is(err, io.EOF) {
			if len(line) > 0 && !bytes.HasPrefix(line, []byte(recordHead)) && !strings.HasPrefix(recordHead, string(line)) {
				return nil, 0, fmt.Errorf("line %d is no call of a quality check: %w", number, tidemark.ErrInvalid)
			}
			return have, whole, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		whole += int64(len(line))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var rec QualityRecord
		if json.Unmarshal(line, &rec) != nil || len(rec.Key) != 2*sha256.Size || rec.Kind != kindAnswer && rec.Kind != kindVerdict {
			return nil, 0, fmt.Errorf("line %d is no call of a quality check: %w", number, tidemark.ErrInvalid)
		}
		if have[rec.Key] = rec.Saved; len(have) > maxRecords {
			return nil, 0, fmt.Errorf("more than %d calls: %w", maxRecords, tidemark.ErrTooLarge)
		}
	}
}

// boundedLine reads a line with its end; io.EOF for what has none.
func boundedLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxRecord {
			return nil, fmt.Errorf("more than %d bytes: %w", maxRecord, tidemark.ErrTooLarge)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// keyOf is what a call is known by: who is asked and all that is asked. nth tells equal questions apart.
func (q *Quality) keyOf(req tidemark.Request, nth int) string {
	sum := sha256.New()
	put := func(b []byte) { sum.Write(fmt.Appendf(nil, "%d:%s", len(b), b)) }
	put(fmt.Appendf(nil, "%q %q %d %d", q.By, req.Model, req.MaxTokens, nth))
	put([]byte(req.System))
	put([]byte(req.Note))
	for _, t := range req.Tools {
		put(fmt.Appendf(nil, "%q %q %s", t.Name, t.Description, t.InputSchema))
	}
	var b []byte
	for _, m := range req.Messages {
		b = m.AppendJSON(b[:0])
		put(b)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// call makes a call, or finds it made.
func (q *Quality) call(ctx context.Context, req tidemark.Request, key string, res *QualityResult) (s Saved, made bool, err error) {
	if s, ok := q.Have[key]; ok {
		res.Reused++
		return s, false, nil
	}
	reply, err := tidemark.Complete(ctx, q.Provider, req)
	if err != nil {
		return s, false, err
	}
	res.Calls++
	res.Usage = res.Usage.Add(reply.Call.Usage)
	return Saved{answerText(reply.Message), reply.Call.Stop, len(reply.Message.Calls()), reply.Call.Usage}, true, nil
}

// keep remembers a call that was made.
func (q *Quality) keep(rec QualityRecord) error {
	if q.Have == nil {
		q.Have = map[string]Saved{}
	}
	q.Have[rec.Key] = rec.Saved
	if q.Save == nil {
		return nil
	}
	if err := q.Save(rec); err != nil {
		return fmt.Errorf("keep a call: %w", err)
	}
	return nil
}
