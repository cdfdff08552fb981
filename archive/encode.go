package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/gz"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	// DefaultMaxBytes bounds a Pack. A span that leaves a view of 200,000 tokens compresses to
	// well under 1 MB, since large blocks are stored apart.
	DefaultMaxBytes = 16 << 20
	// memberBytes is how much text is compressed at a time. Each piece is a gzip member of its own
	// and together they are one gzip file (RFC 1952 §2.2), so no writer is held while the caller
	// waits for the next page of entries. At 1 MiB the seams cost under 1 % of the size.
	memberBytes = 1 << 20
)

// Encoder turns entries into the bytes of an archive. Its zero value is ready. It is used by one
// goroutine at a time.
type Encoder struct {
	MaxBytes int64 // bound on the result; 0 is DefaultMaxBytes

	lines []byte       // not yet compressed
	out   bytes.Buffer // whole gzip members
	raw   hash.Hash    // of all lines
	pack  Pack
}

// Pack is a finished archive in memory.
type Pack struct {
	Data        []byte        // gzip members
	SHA256      tidemark.Hash // of Data
	LinesSHA256 tidemark.Hash // of the lines, which no other version of the compressor changes
	RawBytes    int64         // of the lines
	Messages    int
	First, Last tidemark.EntryID
}

// Add writes the entry as the next line; entries that are no messages are passed over. A result
// beyond MaxBytes is ErrTooLarge, and so is a line that Read would refuse.
func (e *Encoder) Add(entry tidemark.Entry) error {
	if entry.Kind != tidemark.KindMessage && entry.Kind != "" {
		return nil
	}
	start := len(e.lines)
	var err error
	if e.lines, err = AppendLine(e.lines, entry); err != nil {
		return err
	}
	if n := len(e.lines) - start; n > maxLine {
		e.lines = e.lines[:start]
		return fmt.Errorf("archive entry %s: %d bytes, at most %d: %w", entry.ID, n, maxLine, tidemark.ErrTooLarge)
	}
	if e.pack.Messages == 0 {
		e.pack.First = entry.ID
	}
	e.pack.Last = entry.ID
	e.pack.Messages++
	if len(e.lines) >= memberBytes {
		return e.flush()
	}
	return nil
}

// Close compresses what is left and returns the whole. The encoder has done its work then.
func (e *Encoder) Close() (Pack, error) {
	if err := e.flush(); err != nil {
		return Pack{}, err
	}
	p := e.pack
	if p.Messages == 0 {
		return Pack{}, nil
	}
	p.Data = e.out.Bytes()
	p.SHA256 = tidemark.HashOf(p.Data)
	p.LinesSHA256 = tidemark.Hash(hex.EncodeToString(e.raw.Sum(nil)))
	return p, nil
}

// flush makes one gzip member of the lines so far. It does not wait.
func (e *Encoder) flush() error {
	if len(e.lines) == 0 {
		return nil
	}
	if e.raw == nil {
		e.raw = sha256.New()
	}
	e.raw.Write(e.lines)
	e.pack.RawBytes += int64(len(e.lines))
	if err := gz.Write(&e.out, e.lines); err != nil {
		return fmt.Errorf("compress archive: %w", err)
	}
	e.lines = e.lines[:0]
	limit := e.MaxBytes
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	if int64(e.out.Len()) > limit {
		return fmt.Errorf("archive of %d messages is larger than %d bytes, archive a shorter span: %w", e.pack.Messages, limit, tidemark.ErrTooLarge)
	}
	return nil
}

// AppendLine appends one entry as a line of an archive, with its line break.
func AppendLine(dst []byte, e tidemark.Entry) ([]byte, error) {
	m, err := e.Message()
	if err != nil {
		return dst, fmt.Errorf("archive entry %s: %w", e.ID, err)
	}
	start := len(dst)
	dst = m.AppendJSON(dst) // blocks are one line each when they are read
	dst = dst[:len(dst)-1]  // the closing brace comes back behind our fields
	if !e.At.IsZero() {
		dst = append(dst, `,"timestamp":`...)
		dst = strconv.AppendInt(dst, e.At.UnixMilli(), 10)
	}
	if e.ID != "" {
		dst = append(dst, `,"id":`...)
		dst = json.AppendString(dst, string(e.ID))
	}
	if e.Origin != (tidemark.Origin{}) {
		if dst, err = appendField(dst, `,"origin":`, e.Origin); err != nil {
			return dst[:start], fmt.Errorf("archive entry %s: %w", e.ID, err)
		}
	}
	if e.Call != nil {
		if dst, err = appendCall(dst, *e.Call); err != nil {
			return dst[:start], fmt.Errorf("archive entry %s: %w", e.ID, err)
		}
	}
	return append(dst, "}\n"...), nil
}

// appendCall writes what a reply cost under the names of the reference where it has them.
func appendCall(dst []byte, c tidemark.Call) ([]byte, error) {
	for _, f := range []struct{ name, value string }{{`,"model":`, c.Model}, {`,"stopReason":`, c.Stop}, {`,"requestId":`, c.RequestID}} {
		if f.value != "" {
			dst = append(dst, f.name...)
			dst = json.AppendString(dst, f.value)
		}
	}
	if !c.Reported {
		dst = append(dst, `,"estimated":true`...)
	}
	return appendField(dst, `,"usage":`, c.Usage)
}

func appendField(dst []byte, name string, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return dst, err
	}
	return append(append(dst, name...), raw...), nil
}
