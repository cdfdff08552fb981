package channel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/clip"
)

// Bounds of files.
const (
	maxFile     = 100 << 20 // the largest that a platform takes
	maxHeld     = 4 << 20   // of one whose size or hash is not known before; a larger one is read twice
	fileTime    = 2 * time.Minute
	fileTries   = 6 // then the message goes without: some two minutes
	spoiltTries = 3 // of a file that is not what the platform said
	bufferSize  = 32 << 10
)

// errSpoilt is a file that is not what the platform said; a connection that was cut looks like that, too.
var errSpoilt = errors.New("it is not what the platform announced")

// errFile is a file that is tried again.
var errFile = errors.New("a file cannot be had now")

// fetch brings a file of a message into the bucket and gives the block by which a model sees it, or a
// note. A file that cannot be had is a note, too: the words that came with it must not be lost.
func (g *Ingress) fetch(ctx context.Context, c Channel, m Incoming, f Media, failed int) (tidemark.Block, string, error) {
	kind := kindOf(f)
	limited, cancel := g.Runtime.WithTimeout(ctx, fileTime)
	defer cancel()
	full, key, held, err := g.bring(limited, c, m.Reply.Account, f)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return tidemark.Block{}, "", context.Cause(ctx)
	case errors.Is(err, errSpoilt) && failed+1 >= spoiltTries:
		return tidemark.Block{}, fmt.Sprintf("[%s: not taken, %s]", kind, errSpoilt), nil
	case errors.Is(err, tidemark.ErrNotFound):
		return tidemark.Block{}, fmt.Sprintf("[%s: the platform no longer has it]", kind), nil
	case errors.Is(err, tidemark.ErrTooLarge):
		return tidemark.Block{}, fmt.Sprintf("[%s: too large to be taken]", kind), nil
	case failed+1 >= fileTries || permanent(err):
		g.Logger.Warn("a file cannot be had", "channel", c.Name(), "kind", kind, "err", clip.To(err.Error(), maxError))
		return tidemark.Block{}, fmt.Sprintf("[%s: it could not be fetched]", kind), nil
	default:
		return tidemark.Block{}, "", fmt.Errorf("fetch %s: %w: %w", kind, errFile, err)
	}
	if b, ok := shown(full, held); ok {
		return b, "", nil
	}
	note := "[" + kind
	if name := oneLine(full.Name); name != "" {
		note += " " + strings.NewReplacer("[", "(", "]", ")").Replace(name)
	}
	return tidemark.Block{}, fmt.Sprintf("%s: %s, %d bytes%s%s]", note, plainType(full.Type), full.Bytes, tidemark.KeptAs, key), nil
}

func kindOf(f Media) string {
	switch kind := oneLine(f.Note); {
	case f.Voice:
		return "voice note"
	case kind != "":
		return kind
	}
	return "file"
}

// bring streams a file into the bucket, held against size and hash: what does not match is never there
// whole. held is all of it where it is small enough to be shown.
func (g *Ingress) bring(ctx context.Context, c Channel, account string, f Media) (full Media, key string, held []byte, err error) {
	full, body, err := open(ctx, c, account, f)
	if err != nil {
		return full, "", nil, err
	}
	defer body.Close()
	key = g.artifact(c, full.SHA256)
	r := &checked{r: body, left: full.Bytes, want: full.SHA256, sum: sha256.New(), keep: full.Bytes <= g.MaxShown && tidemark.Attachable(plainType(full.Type), full.Bytes)}
	_, err = g.Blobs.Put(ctx, key, r, full.Bytes, tidemark.PutOptions{ContentType: plainType(full.Type)})
	switch {
	case r.err != nil && !errors.Is(r.err, io.EOF):
		err = r.err
	case err != nil: // whatever the bucket says, it is not said of the platform's file
		err = fmt.Errorf("keep file: %s: %w", err.Error(), tidemark.ErrUnavailable)
	}
	return full, key, r.held, err
}

// open begins to read a file whose size and hash are known then.
func open(ctx context.Context, c Channel, account string, f Media) (full Media, body io.ReadCloser, err error) {
	full, body, err = c.Open(ctx, account, f)
	if err != nil {
		return full, nil, err
	}
	differ := f.SHA256 != "" && full.SHA256 != "" && !strings.EqualFold(f.SHA256, full.SHA256)
	if full.SHA256 = strings.ToLower(cmp.Or(full.SHA256, f.SHA256)); !isSum(full.SHA256) {
		full.SHA256 = ""
	}
	switch {
	case differ:
		err = errSpoilt
	case full.Bytes > maxFile:
		err = fmt.Errorf("file of %d bytes, at most %d: %w", full.Bytes, maxFile, tidemark.ErrTooLarge)
	case full.Bytes > 0 && full.SHA256 != "":
		return full, body, nil
	}
	var raw []byte
	if err == nil {
		raw, err = measure(body, &full)
	}
	body.Close() // what came of it
	switch {
	case err != nil:
		return full, nil, err
	case raw != nil:
		return full, io.NopCloser(bytes.NewReader(raw)), nil
	}
	_, body, err = c.Open(ctx, account, f) // too large to be held: it comes once more
	return full, body, err
}

func isSum(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// measure reads a file whose size or hash is not known, notes both, and returns it if it is small enough to be
// held. What is known of it must be right.
func measure(body io.Reader, full *Media) ([]byte, error) {
	sum := sha256.New()
	body = io.TeeReader(body, sum)
	raw, err := io.ReadAll(io.LimitReader(body, maxHeld+1))
	size := int64(len(raw))
	if err == nil && size > maxHeld {
		var more int64
		more, err = io.Copy(io.Discard, io.LimitReader(body, maxFile+1-size))
		raw, size = nil, size+more
	}
	got := hex.EncodeToString(sum.Sum(nil))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read file: %w: %w", err, tidemark.ErrUnavailable)
	case size > maxFile:
		return nil, fmt.Errorf("file of over %d bytes: %w", maxFile, tidemark.ErrTooLarge)
	case size == 0 || full.Bytes > 0 && full.Bytes != size || full.SHA256 != "" && full.SHA256 != got:
		return nil, errSpoilt
	}
	full.Bytes, full.SHA256 = size, got
	return raw, nil
}

func (g *Ingress) artifact(c Channel, sum string) string {
	return "agents/" + c.Rules.Agent + "/artifacts/" + sum
}

// checked reads a file of a known size and hash. The last piece is given out when the hash has been
// seen to be right, so whoever stores what it reads never has a wrong file whole.
type checked struct {
	r    io.Reader
	left int64
	want string
	sum  hash.Hash
	keep bool
	held []byte
	err  error
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(int64(len(p)), max(c.left, 1), bufferSize)]
	n, err := io.ReadAtLeast(c.r, p, len(p))
	if int64(n) > c.left || err != nil && int64(n) < c.left {
		c.err = errSpoilt
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			c.err = fmt.Errorf("read file: %w: %w", err, tidemark.ErrUnavailable)
		}
		return 0, c.err
	}
	c.left -= int64(n)
	c.sum.Write(p[:n])
	if c.keep {
		c.held = append(c.held, p[:n]...)
	}
	if c.left > 0 {
		return n, nil
	}
	if hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		c.err, c.held = errSpoilt, nil
		return 0, c.err
	}
	c.err = io.EOF
	return n, io.EOF
}

// plainType is a MIME type without its parameters, and without what a header could not hold.
func plainType(s string) string {
	t, _, err := mime.ParseMediaType(s)
	if err != nil || strings.ContainsFunc(t, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
		return "application/octet-stream"
	}
	return t
}

// shown makes the block by which a model sees a file, if it reads such.
func shown(f Media, held []byte) (tidemark.Block, bool) {
	if len(held) == 0 {
		return tidemark.Block{}, false
	}
	b, err := tidemark.Attach(plainType(f.Type), oneLine(f.Name), base64.StdEncoding.EncodeToString(held))
	return b, err == nil
}
