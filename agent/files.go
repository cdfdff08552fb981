package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/memory"
)

const (
	// maxEdit bounds a file that is edited: its old text is kept in one row.
	maxEdit      = 1_800_000
	keepVersions = 50
)

// File is a memory file. Content is empty in listings.
type File struct {
	Path     string    `json:"path"` // below the agent's folder
	ETag     string    `json:"etag,omitempty"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
	Content  []byte    `json:"-"`
}

// Files lists the memory files, the curated ones first, then in order of their paths. next is empty
// on the last page. It is for the owner: nothing is left out.
func (fs *files) Files(ctx context.Context, cursor string, limit int) (page []File, next string, err error) {
	limit = pageLimit(limit)
	if cursor == "" {
		if page, err = fs.curated(ctx); err != nil {
			return nil, "", err
		}
	}
	objects, next, err := fs.cfg.Blobs.List(ctx, fs.blobKey("memory/"), cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("list memory files: %w", err)
	}
	for _, o := range objects {
		if f := fs.file(o); memory.CheckPath(f.Path) == nil {
			page = append(page, f)
		}
	}
	return page, next, nil
}

// curated lists MEMORY.md and the persona files that are there.
func (fs *files) curated(ctx context.Context) ([]File, error) {
	var page []File
	for _, path := range []string{memory.LongTerm, memory.Soul, memory.Identity, memory.Human, memory.Instructions, memory.ToolNotes} {
		objects, _, err := fs.cfg.Blobs.List(ctx, fs.blobKey(path), "", 1)
		if err != nil {
			return nil, fmt.Errorf("list memory files: %w", err)
		}
		if len(objects) == 1 && objects[0].Key == fs.blobKey(path) {
			page = append(page, fs.file(objects[0]))
		}
	}
	return page, nil
}

func (fs *files) file(o tidemark.Object) File {
	return File{Path: strings.TrimPrefix(o.Key, memory.Folder(fs.cfg.Name)), ETag: o.ETag, Size: o.Size, Modified: o.Modified}
}

// File reads a memory file, with what is pending for it; a missing one is ErrNotFound.
func (fs *files) File(ctx context.Context, path string) (File, error) {
	if err := memory.CheckPath(path); err != nil {
		return File{}, err
	}
	content, opt, err := fs.current(ctx, path)
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	if opt.IfAbsent && len(content) == 0 {
		return File{}, fmt.Errorf("file %s: %w", path, tidemark.ErrNotFound)
	}
	return File{Path: path, ETag: opt.IfMatch, Size: int64(len(content)), Content: content}, nil
}

// PutFile writes a memory file and keeps the text that it replaces. ifMatch is the ETag of that
// text, "*" for whatever is there, or empty for a file that must not exist.
//
// # Errors
//
// ErrConflict when the condition does not hold, ErrInvalid and ErrTooLarge for a bad path or text.
func (fs *files) PutFile(ctx context.Context, path string, content []byte, ifMatch string) (File, error) {
	f, err := fs.put(ctx, path, content, ifMatch, "edit")
	if err != nil {
		return File{}, fmt.Errorf("write %s: %w", path, err)
	}
	return f, nil
}

func (fs *files) put(ctx context.Context, path string, content []byte, ifMatch, by string) (File, error) {
	if err := checkContent(path, content); err != nil {
		return File{}, err
	}
	old, opt, err := fs.load(ctx, path)
	if err != nil {
		return File{}, err
	}
	switch {
	case ifMatch == "*":
	case ifMatch == "" && !opt.IfAbsent:
		return File{}, fmt.Errorf("the file exists, name the version that is replaced (If-Match): %w", tidemark.ErrConflict)
	case ifMatch != opt.IfMatch:
		return File{}, fmt.Errorf("the file was changed meanwhile, read it again: %w", tidemark.ErrConflict)
	}
	if bytes.Equal(old, content) && !opt.IfAbsent {
		return File{Path: path, ETag: opt.IfMatch, Size: int64(len(content)), Content: content}, nil
	}
	// Of a file that is new the empty text is kept, so that its first edit can be undone too.
	if len(old) > 0 || opt.IfAbsent {
		if err := fs.keep(ctx, path, old, by); err != nil {
			return File{}, fmt.Errorf("keep the old text: %w", err)
		}
	}
	opt.ContentType = markdown
	o, err := fs.cfg.Blobs.Put(ctx, fs.blobKey(path), bytes.NewReader(content), int64(len(content)), opt)
	if err != nil {
		return File{}, err
	}
	return File{Path: path, ETag: o.ETag, Size: int64(len(content)), Modified: o.Modified, Content: content}, nil
}

func checkContent(path string, content []byte) error {
	if err := memory.CheckPath(path); err != nil {
		return err
	}
	if len(content) > maxEdit {
		return fmt.Errorf("text of %d bytes, at most %d: %w", len(content), maxEdit, tidemark.ErrTooLarge)
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return fmt.Errorf("text must be UTF-8 without NUL: %w", tidemark.ErrInvalid)
	}
	return nil
}

// keep stores a text that is about to be replaced, before it is. One that is never replaced after
// all is passed over by Undo, since it equals the file.
func (fs *files) keep(ctx context.Context, path string, old []byte, by string) error {
	if len(old) > maxEdit {
		return fmt.Errorf("the file has %d bytes, over %d it cannot be edited here: %w", len(old), maxEdit, tidemark.ErrTooLarge)
	}
	return fs.cfg.DB.Tx(ctx, []tidemark.Stmt{
		{
			SQL:  `INSERT INTO agent_versions(agent, path, at, replaced_by, body, undone) VALUES(?, ?, ?, ?, ?, ?)`,
			Args: []any{fs.cfg.Name, path, fs.now().UnixMilli(), by, string(old), by == "undo"}, Want: 1,
		},
		{
			SQL: `DELETE FROM agent_versions WHERE agent = ? AND path = ? AND seq <=
				(SELECT seq FROM agent_versions WHERE agent = ? AND path = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`,
			Args: []any{fs.cfg.Name, path, fs.cfg.Name, path, keepVersions},
		},
	})
}

// Version is an earlier text of a file that was edited.
type Version struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"` // when it was replaced
	By      string    `json:"by"` // what replaced it: edit, tool or undo
	Undone  bool      `json:"undone,omitempty"`
	Content []byte    `json:"-"`
}

// Versions lists the kept texts of a file, newest first, at most 50.
func (fs *files) Versions(ctx context.Context, path string) ([]Version, error) {
	if err := memory.CheckPath(path); err != nil {
		return nil, err
	}
	return host.Read(ctx, fs.cfg.DB, "list versions of "+path, func(r tidemark.Row) (Version, error) {
		return Version{ID: r.Int(0), At: host.UTC(r.Int(1)), By: r.Text(2), Undone: r.Int(3) != 0, Content: r.Bytes(4)}, nil
	}, `SELECT seq, at, replaced_by, undone, body FROM agent_versions WHERE agent = ? AND path = ? ORDER BY seq DESC LIMIT ?`, fs.cfg.Name, path, keepVersions)
}

// Undo puts back the text before the last edit; again, the one before that. Of a file that the edit
// made an empty one is left. What the agent remembered in a daily file since then stays. The undone
// text is kept as a version too. With nothing to undo it is ErrNotFound.
func (fs *files) Undo(ctx context.Context, path string) (File, error) {
	versions, err := fs.Versions(ctx, path)
	if err != nil {
		return File{}, err
	}
	now, opt, err := fs.load(ctx, path)
	if err != nil {
		return File{}, fmt.Errorf("undo %s: %w", path, err)
	}
	for _, v := range versions {
		if v.Undone {
			continue
		}
		since, err := fs.sectionRows(ctx, `SELECT body FROM agent_sections WHERE agent = ? AND path = ? AND done >= ? ORDER BY at, id LIMIT ?`,
			fs.cfg.Name, path, v.At.UnixMilli(), flushPage)
		if err != nil {
			return File{}, fmt.Errorf("undo %s: %w", path, err)
		}
		text := memory.Append(v.Content, fs.cfg.Zone, since...)
		if bytes.Equal(text, now) {
			continue
		}
		match := opt.IfMatch
		f, err := fs.put(ctx, path, text, match, "undo")
		if err != nil {
			return File{}, fmt.Errorf("undo %s: %w", path, err)
		}
		err = fs.cfg.DB.Tx(ctx, []tidemark.Stmt{{SQL: `UPDATE agent_versions SET undone = 1 WHERE agent = ? AND path = ? AND seq >= ?`, Args: []any{fs.cfg.Name, path, v.ID}}})
		return f, err
	}
	return File{}, fs.nothingToUndo(path, opt.IfAbsent, len(versions))
}

// nothingToUndo says why.
func (fs *files) nothingToUndo(path string, absent bool, versions int) error {
	switch {
	case absent && versions == 0:
		return fmt.Errorf("undo %s: there is no such file: %w", path, tidemark.ErrNotFound)
	case versions > 0:
		return fmt.Errorf("undo %s: every edit of it is undone already, its versions keep the texts; an edit to undo was %w", path, tidemark.ErrNotFound)
	}
	return fmt.Errorf("undo %s: what was remembered in it is no edit, take it out with one; an edit to undo was %w", path, tidemark.ErrNotFound)
}

// edit is a change of a file by its own text, tried again when a person changed it meanwhile.
func (fs *files) edit(ctx context.Context, path, old, replacement string) (File, error) {
	for range flushTries {
		file, opt, err := fs.load(ctx, path)
		if err != nil {
			return File{}, fmt.Errorf("edit %s: %w", path, err)
		}
		text, err := memory.Edit(string(file), old, replacement)
		if err != nil {
			return File{}, fmt.Errorf("%s: %w", path, err)
		}
		f, err := fs.put(ctx, path, text, opt.IfMatch, "tool")
		if !errors.Is(err, tidemark.ErrConflict) {
			if err != nil {
				err = fmt.Errorf("edit %s: %w", path, err)
			}
			return f, err
		}
	}
	return File{}, fmt.Errorf("edit %s: changed by others %d times in a row: %w", path, flushTries, tidemark.ErrConflict)
}
