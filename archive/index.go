package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// The index is one object a month, so that a write costs what a month holds and not the whole
// history, and a listing of the newest reads one object. A month is that of [Info.At] in UTC: a
// name for a drawer, not anybody's calendar. The truth is the objects themselves: Mend.

const (
	maxIndex    = 32 << 20 // bytes of one month: about 80,000 archives
	maxTries    = 8        // of a conditional write that others race with
	indexFolder = "index/"
	indexSuffix = ".jsonl"
	pageSize    = 1000
)

// Progress tells a person how far a long work is.
type Progress struct {
	Key   string // of the archive that is worked on
	Done  int    // archives finished
	Total int    // archives in all, 0 when it is not known
	Bytes int64  // read so far
}

// IndexKey is the object of the index that describes archives of that time.
func IndexKey(agent string, at time.Time) string {
	return Folder(agent) + indexFolder + at.UTC().Format("2006-01") + indexSuffix
}

// Index adds archives to the index of their agent; those that are in it already are replaced. One
// writer, the agent, calls it; a race with another is lost by neither, since writes are conditional.
func Index(ctx context.Context, blobs tidemark.Blobs, agent string, infos ...Info) error {
	months := map[string][]Info{}
	for _, i := range infos {
		key := IndexKey(agent, i.At)
		months[key] = append(months[key], i)
	}
	for _, key := range slices.Sorted(maps.Keys(months)) {
		if err := mergeMonth(ctx, blobs, key, months[key]); err != nil {
			return fmt.Errorf("index %s: %w", key, err)
		}
	}
	return nil
}

// mergeMonth adds infos to a month.
func mergeMonth(ctx context.Context, blobs tidemark.Blobs, key string, infos []Info) error {
	for range maxTries {
		old, opt, err := readMonth(ctx, blobs, key)
		if err != nil {
			return err
		}
		merged := lastOfEach(append(slices.Clone(old), infos...))
		slices.SortStableFunc(merged, newestFirst)
		if slices.EqualFunc(old, merged, func(a, b Info) bool { return line(a) == line(b) }) {
			return nil
		}
		var out bytes.Buffer
		for _, i := range slices.Backward(merged) { // oldest first, as a log
			out.WriteString(line(i))
		}
		opt.ContentType = "application/jsonl"
		_, err = blobs.Put(ctx, key, bytes.NewReader(out.Bytes()), int64(out.Len()), opt)
		if !errors.Is(err, tidemark.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("changed by others %d times in a row: %w", maxTries, tidemark.ErrConflict)
}

// readMonth returns what a month holds, newest first, and the condition under which it is current.
// Lines that cannot be read are dropped: they came from nobody's archive.
func readMonth(ctx context.Context, blobs tidemark.Blobs, key string) ([]Info, tidemark.PutOptions, error) {
	o, body, err := blobs.Get(ctx, key)
	if errors.Is(err, tidemark.ErrNotFound) {
		return nil, tidemark.PutOptions{IfAbsent: true}, nil
	}
	if err != nil {
		return nil, tidemark.PutOptions{}, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxIndex+1))
	if err != nil {
		return nil, tidemark.PutOptions{}, err
	}
	if len(data) > maxIndex {
		return nil, tidemark.PutOptions{}, fmt.Errorf("more than %d bytes: %w", maxIndex, tidemark.ErrTooLarge)
	}
	var infos []Info
	for l := range bytes.Lines(data) {
		var i Info
		if json.Unmarshal(l, &i) == nil && i.Key != "" {
			infos = append(infos, i)
		}
	}
	slices.SortStableFunc(infos, newestFirst)
	return infos, tidemark.PutOptions{IfMatch: o.ETag}, nil
}

func line(i Info) string {
	i.At = i.At.UTC().Truncate(time.Millisecond)
	raw, err := json.Marshal(i)
	if err != nil { // plain fields only
		return ""
	}
	return string(raw) + "\n"
}

func newestFirst(a, b Info) int {
	return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Key, b.Key))
}

// lastOfEach keeps, of infos with the same key, the one that was added last.
func lastOfEach(infos []Info) []Info {
	at := map[string]int{}
	var out []Info
	for _, i := range infos {
		if n, ok := at[i.Key]; ok {
			out[n] = i
			continue
		}
		at[i.Key] = len(out)
		out = append(out, i)
	}
	return out
}

// ListOptions choose what [List] returns. The zero value is the newest 100 archives.
type ListOptions struct {
	Session string // only of this session id
	Cursor  string // of an earlier page
	Limit   int    // 0 is 100
}

// List returns archives of an agent, newest first. next is empty on the last page.
func List(ctx context.Context, blobs tidemark.Blobs, agent string, opt ListOptions) (page []Info, next string, err error) {
	if opt.Limit <= 0 || opt.Limit > pageSize {
		opt.Limit = 100
	}
	after, err := parseCursor(opt.Cursor)
	if err != nil {
		return nil, "", err
	}
	months, err := months(ctx, blobs, agent)
	if err != nil {
		return nil, "", fmt.Errorf("list archives of %s: %w", agent, err)
	}
	for _, key := range slices.Backward(months) {
		if opt.Cursor != "" && key > IndexKey(agent, after.At) {
			continue
		}
		infos, _, err := readMonth(ctx, blobs, key)
		if err != nil {
			return nil, "", fmt.Errorf("list archives of %s: %w", agent, err)
		}
		for _, i := range infos {
			if opt.Session != "" && i.Session != opt.Session || opt.Cursor != "" && newestFirst(i, after) <= 0 {
				continue
			}
			if len(page) == opt.Limit {
				last := page[len(page)-1]
				return page, strconv.FormatInt(last.At.UnixMilli(), 10) + ":" + last.Key, nil
			}
			page = append(page, i)
		}
	}
	return page, "", nil
}

func parseCursor(s string) (Info, error) {
	if s == "" {
		return Info{}, nil
	}
	ms, key, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil {
		return Info{}, fmt.Errorf("cursor %.40q: give back what the last page returned: %w", s, tidemark.ErrInvalid)
	}
	return Info{At: time.UnixMilli(n).UTC(), Key: key}, nil
}

// months returns the objects of the index, oldest first.
func months(ctx context.Context, blobs tidemark.Blobs, agent string) ([]string, error) {
	var keys []string
	for o, err := range objects(ctx, blobs, Folder(agent)+indexFolder) {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(o.Key, indexSuffix) {
			keys = append(keys, o.Key)
		}
	}
	return keys, nil
}
