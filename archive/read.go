package archive

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// maxLine is the longest line that is read: the reference allows 25 MB of media in a message, in
// base64, and puts it on one line.
const maxLine = 64 << 20

// Limits bound what reading an archive may cost. The zero value is the default of each.
type Limits struct {
	Line  int   // bytes of one line; 64 MiB
	Bytes int64 // bytes of all lines; 8 GiB
	// Ratio bounds decompressed to compressed bytes once more than Free bytes have come out: real
	// conversations stay under 30, deflate cannot exceed 1,032, a bomb comes close to that.
	Ratio int64 // 200
	Free  int64 // 512 MiB
}

func (l Limits) filled() Limits {
	if l.Line <= 0 {
		l.Line = maxLine
	}
	if l.Bytes <= 0 {
		l.Bytes = 8 << 30
	}
	if l.Ratio <= 0 {
		l.Ratio = 200
	}
	if l.Free <= 0 {
		l.Free = 512 << 20
	}
	return l
}

// Line is one message of an archive.
type Line struct {
	N       int // its line, from 1; the first of several that make one message
	Lines   int // how many lines it took: 1, more for results of parallel calls in the reference's format
	Message tidemark.Message
	ID      tidemark.EntryID // empty in archives of the reference
	At      time.Time        // zero when the line does not say
	Origin  tidemark.Origin
	Call    *tidemark.Call // replies only
}

// Entry returns the line as an entry, without log, seq and chain.
func (l Line) Entry() tidemark.Entry {
	payload := l.Message.AppendJSON(nil)
	return tidemark.Entry{ID: l.ID, Kind: tidemark.KindMessage, At: l.At, Tokens: tidemark.Estimate(l.Message),
		Call: l.Call, Origin: l.Origin, Payload: payload, Hash: tidemark.HashOf(payload)}
}

// Read yields the messages of an archive in order. It holds one line at a time.
//
// # Errors
//
// A missing archive is ErrNotFound. A line that is no message is ErrInvalid; the Line has its
// number, and a reader that goes on gets the next one. Damaged compression is ErrInvalid and a
// breach of [Limits] ErrTooLarge; both are the end.
func Read(ctx context.Context, blobs tidemark.Blobs, key string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		_, body, err := blobs.Get(ctx, key)
		if err != nil {
			yield(Line{}, fmt.Errorf("read archive %s: %w", key, err))
			return
		}
		defer body.Close()
		for line, err := range Decode(body, Limits{}) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				err = fmt.Errorf("read archive %s: %w", key, err)
			}
			if !yield(line, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// Decode yields the messages of a stream of gzipped JSON lines, see [Read]. Uncompressed lines are
// read too.
func Decode(r io.Reader, limits Limits) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		n := 0
		var held *Line // tool results of the reference, to which the next line may add
		for raw, err := range rawLines(r, limits) {
			n++
			if err != nil {
				if held == nil || yield(*held, nil) {
					yield(Line{N: n}, err)
				}
				return
			}
			line, result, err := decodeLine(raw)
			line.N, line.Lines = n, 1
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if result && held != nil && err == nil {
				held.Message.Content = append(held.Message.Content, line.Message.Content...)
				held.Lines++
				continue
			}
			if held != nil && !yield(*held, nil) {
				return
			}
			held = nil
			if result && err == nil {
				held = &line
				continue
			}
			if !yield(line, err) {
				return
			}
		}
		if held != nil {
			yield(*held, nil)
		}
	}
}

// extra is what a line says beside its message.
type extra struct {
	ID         tidemark.EntryID `json:"id"`
	Timestamp  json.RawMessage  `json:"timestamp"`
	Origin     tidemark.Origin  `json:"origin"`
	Model      string           `json:"model"`
	StopReason string           `json:"stopReason"`
	RequestID  string           `json:"requestId"`
	Estimated  bool             `json:"estimated"`
	Usage      *usage           `json:"usage"`
}

// usage has our names and the reference's.
type usage struct {
	tidemark.Usage
	RefInput  tidemark.Tokens `json:"input"`
	RefOutput tidemark.Tokens `json:"output"`
	RefRead   tidemark.Tokens `json:"cacheRead"`
	RefWrite  tidemark.Tokens `json:"cacheWrite"`
}

// decodeLine reads one line; result says that it is a tool result of the reference.
func decodeLine(raw []byte) (l Line, result bool, err error) {
	if foreign(raw) {
		l.Message, result, err = decodeReference(raw)
	} else {
		err = json.Unmarshal(raw, &l.Message)
	}
	if err != nil {
		if !errors.Is(err, tidemark.ErrInvalid) {
			err = fmt.Errorf("%w: %w", err, tidemark.ErrInvalid)
		}
		return Line{}, false, err
	}
	var x extra
	if json.Unmarshal(raw, &x) != nil {
		return l, result, nil //nolint:nilerr // the message counts; fields of ours that others gave other types do not
	}
	l.ID, l.At, l.Origin = x.ID, when(x.Timestamp), x.Origin
	if l.Message.Role == tidemark.Assistant && (x.Usage != nil || x.Model != "" || x.StopReason != "") {
		l.Call = &tidemark.Call{Model: x.Model, Stop: x.StopReason, RequestID: x.RequestID, Reported: x.Usage != nil && !x.Estimated}
		if u := x.Usage; u != nil {
			l.Call.Usage = u.Usage.Add(tidemark.Usage{Input: u.RefInput, Output: u.RefOutput, CacheRead: u.RefRead, CacheCreation: u.RefWrite})
		}
	}
	return l, result, nil
}

// when reads milliseconds or an RFC 3339 time.
func when(raw json.RawMessage) time.Time {
	var ms float64
	if json.Unmarshal(raw, &ms) == nil && ms > 0 && ms < 1<<53 {
		return time.UnixMilli(int64(ms)).UTC()
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// rawLines yields the lines of a gzip stream without their breaks; blank ones are passed over. A
// line is valid until the next one.
func rawLines(r io.Reader, limits Limits) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		limits := limits.filled()
		in := &counter{r: r}
		packed := bufio.NewReaderSize(in, 32<<10)
		var text io.Reader = packed
		zipped := false
		if magic, _ := packed.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
			z, err := gzip.NewReader(packed)
			if err != nil {
				yield(nil, damaged(err))
				return
			}
			text, zipped = z, true
		}
		lines := lineReader{r: bufio.NewReaderSize(text, 64<<10), limit: limits.Line}
		for {
			line, more, err := lines.next()
			switch {
			case err != nil:
				yield(nil, damaged(err))
				return
			case !more:
				return
			case lines.total > limits.Bytes || zipped && lines.total > limits.Free && lines.total/limits.Ratio > in.n:
				yield(nil, fmt.Errorf("%d bytes of text from %d bytes: %w", lines.total, in.n, tidemark.ErrTooLarge))
				return
			}
			if len(bytes.TrimSpace(line)) > 0 && !yield(line, nil) {
				return
			}
		}
	}
}

// damaged marks the errors of the decompressor as bad input; those of the bucket stay what they are.
func damaged(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt) {
		return fmt.Errorf("damaged: %w: %w", err, tidemark.ErrInvalid)
	}
	return err
}

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// lineReader reads lines up to a length.
type lineReader struct {
	r     *bufio.Reader
	limit int
	long  []byte // a line longer than the buffer of r
	total int64
}

// next returns a line without its break; more is false after the last. Only io.EOF itself is the end:
// a bucket whose connection broke may say so in an error that wraps it.
func (l *lineReader) next() (line []byte, more bool, err error) {
	l.long = l.long[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		l.total += int64(len(piece))
		if len(l.long)+len(piece) > l.limit {
			return nil, false, fmt.Errorf("a line is longer than %d bytes: %w", l.limit, tidemark.ErrTooLarge)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			l.long = append(l.long, piece...)
			continue
		}
		if err != nil && err != io.EOF {
			return nil, false, err
		}
		if len(l.long) > 0 {
			piece = append(l.long, piece...)
			l.long = piece
		}
		return bytes.TrimRight(piece, "\r\n"), err == nil || len(piece) > 0, nil
	}
}
