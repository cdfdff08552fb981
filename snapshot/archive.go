package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// The archive of a snapshot is a gzipped tar file (POSIX ustar, regular files only) of these members, in this order:
//
//	manifest.json         what it is: format, version, the node and its ancestors
//	<stream>/000001.jsonl parts of whole lines of a stream, numbered from 1; "log" is the history of a session
//	session.jsonl         the log of Claude Code, as it stands
//	side/<path>           files that belong to that log
//	blobs/<sha256>        content by its hash
//	end.json              how many members and bytes, and the SHA-256 over all of them: without it the file was cut off
//
// Members between the first and the last may stand in any order.
const (
	ArchiveFormat  = "tidemark-snapshot"
	ArchiveVersion = 1
	ArchiveType    = "application/gzip"

	manifestName = "manifest.json"
	logName      = "session.jsonl"
	endName      = "end.json"
	sideFolder   = "side/"
	blobFolder   = "blobs/"
)

// Bounds of an archive.
const (
	MaxManifest = 16 << 20 // bytes
	MaxLineage  = 20_000   // ancestors; further ones are counted only
	maxPart     = 1 << 20  // bytes of a part, unless one line is longer
	maxEnd      = 4 << 10  // bytes of end.json
	maxSide     = 6        // folders of a side file
)

// Manifest is the first member of an archive.
type Manifest struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	Kind      string    `json:"kind"` // OfSession or OfClaude
	Generator string    `json:"generator,omitempty"`
	Created   time.Time `json:"created_at"`
	Node      Node      `json:"node"`
	Lineage   []Node    `json:"lineage,omitempty"` // its ancestors, root first
	// LineageOmitted counts ancestors before the first of Lineage, which had no room.
	LineageOmitted int   `json:"lineage_omitted,omitempty"`
	Bytes          int64 `json:"bytes,omitempty"`   // of the log, where that is known beforehand
	Entries        int64 `json:"entries,omitempty"` // of the log, where that is known beforehand
	// More is what the world of that kind adds, such as settings of the session.
	More json.RawMessage `json:"more,omitempty"`
}

// check refuses what no reader of this version may go on with.
func (m *Manifest) check() error {
	switch {
	case m.Format != ArchiveFormat:
		return fmt.Errorf("manifest.json: format %.40q: want %q; is it the archive of a snapshot? %w", m.Format, ArchiveFormat, tidemark.ErrInvalid)
	case m.Version != ArchiveVersion:
		return fmt.Errorf("manifest.json: version %d: this program reads version %d: %w", m.Version, ArchiveVersion, tidemark.ErrInvalid)
	case m.Kind != OfSession && m.Kind != OfClaude:
		return fmt.Errorf("manifest.json: kind %.40q: want session or claude: %w", m.Kind, tidemark.ErrInvalid)
	case len(m.Lineage) > MaxLineage:
		return fmt.Errorf("manifest.json: lineage of %d ancestors, over %d: %w", len(m.Lineage), MaxLineage, tidemark.ErrTooLarge)
	}
	if err := m.Node.Check(); err != nil {
		return fmt.Errorf("manifest.json: node: %w", err)
	}
	for i := range m.Lineage {
		if err := m.Lineage[i].Check(); err != nil {
			return fmt.Errorf("manifest.json: lineage[%d]: %w", i, err)
		}
	}
	return nil
}

// Limits bound what a reader takes. The zero value is good: each zero is the default.
type Limits struct {
	Members int   // members of the archive
	Member  int64 // bytes of one member
	Total   int64 // bytes of all members
	Ratio   int64 // bytes that one compressed byte may stand for, on the whole
}

// What a zero of [Limits] means.
const (
	DefaultMembers = 100_000
	DefaultMember  = 2 << 30
	DefaultTotal   = 8 << 30
	DefaultRatio   = 200

	ratioFree   = 8 << 20 // bytes that come before the ratio counts
	ratioWrite  = 100     // over which the writer stores without compressing, so that its archives can be read
	ratioWindow = 1 << 20 // bytes between two looks at it
)

func (l Limits) filled() Limits {
	if l.Members <= 0 {
		l.Members = DefaultMembers
	}
	if l.Member <= 0 {
		l.Member = DefaultMember
	}
	if l.Total <= 0 {
		l.Total = DefaultTotal
	}
	if l.Ratio <= 0 {
		l.Ratio = DefaultRatio
	}
	return l
}

// MemberKind says what a member is.
type MemberKind string

// Kinds of members that [Reader.Next] gives.
const (
	MemberPart MemberKind = "part" // whole lines of Stream
	MemberLog  MemberKind = "log"  // the log of Claude Code
	MemberSide MemberKind = "side" // the file Path
	MemberBlob MemberKind = "blob" // content whose SHA-256 is Hash, which is checked while it is read
)

// Member is one file of an archive.
type Member struct {
	Name   string
	Kind   MemberKind
	Size   int64
	Stream string        // of a part, such as log
	Path   string        // of a side file: relative, with slashes, clean
	Hash   tidemark.Hash // of a blob
	part   int           // its number in the stream
}

// nameMember reads the name of a member, which is all that decides where it may go.
func nameMember(name string) (Member, error) {
	m := Member{Name: name}
	switch {
	case name == logName:
		m.Kind = MemberLog
		return m, nil
	case strings.HasPrefix(name, sideFolder):
		m.Kind, m.Path = MemberSide, name[len(sideFolder):]
		return m, checkPath(m.Path)
	case strings.HasPrefix(name, blobFolder):
		m.Kind, m.Hash = MemberBlob, tidemark.Hash(name[len(blobFolder):])
		if !isHash(string(m.Hash)) {
			return m, badName(name, "want blobs/ and a SHA-256 in lower case hex")
		}
		return m, nil
	}
	stream, file, ok := strings.Cut(name, "/")
	digits, isLines := strings.CutSuffix(file, ".jsonl")
	if !ok || !isLines || !isStream(stream) || len(digits) != 6 {
		return m, badName(name, "want log/000001.jsonl, session.jsonl, side/… or blobs/…")
	}
	part, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return m, badName(name, "want six digits")
	}
	m.part = int(part)
	m.Kind, m.Stream = MemberPart, stream
	return m, nil
}

// isStream reports whether s can name a stream of lines: 1 to 20 small letters, no folder of other members.
func isStream(s string) bool {
	const most = 20
	return s != "" && len(s) <= most && s+"/" != sideFolder && s+"/" != blobFolder && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == ""
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// checkPath holds the path of a side file to what every file system takes as a file below a folder: letters of ASCII,
// digits, and - _ . inside of a segment.
func checkPath(path string) error {
	segments := strings.Split(path, "/")
	if len(segments) > maxSide {
		return badName(path, fmt.Sprintf("over %d folders deep", maxSide))
	}
	for _, s := range segments {
		if s == "" || s[0] == '.' || s[len(s)-1] == '.' {
			return badName(path, "a segment is empty, or begins or ends with a dot")
		}
		for _, c := range []byte(s) {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
				return badName(path, "want letters, digits, - _ and dots only")
			}
		}
	}
	return nil
}

// badName is the error of a name, cut short and quoted, since it was made by others.
func badName(name, want string) error {
	const most = 100
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "?")
	}
	return fmt.Errorf("member %q: %s: %w", name, want, tidemark.ErrInvalid)
}
