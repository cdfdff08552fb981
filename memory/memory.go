// Package memory holds the rules of what outlives a session: where it is written, how a section of
// a daily file reads, which facts are worth one line, what goes into a prompt, and who may read and
// write what. It does no I/O; package agent, the only writer of memory files, acts on it. Begin with
// daily.go and facts.go.
//
// Paths in this package are relative to the agent's folder in the bucket:
//
//	MEMORY.md                             curated by the owner and the agent, main session only
//	SOUL.md IDENTITY.md USER.md …         persona and instructions, main session only
//	memory/2026-11-21.md                  daily, from the owner's sessions
//	memory/peers/whatsapp~+49…/2026-….md  daily, from someone who is not the owner
//	memory/DIGEST.md memory/digest/….md   the owner's facts that hold still, written at night
package memory

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Files of an agent beside the daily ones.
const (
	LongTerm     = "MEMORY.md"
	Soul         = "SOUL.md"
	Identity     = "IDENTITY.md"
	Human        = "USER.md"
	Instructions = "AGENTS.md"
	ToolNotes    = "TOOLS.md"
)

const (
	dailyFolder = "memory/"
	peersFolder = "memory/peers/"
	extension   = ".md"
	dayFormat   = "2006-01-02"
	maxPeer     = 160 // bytes of a peer's name in a path
)

// MaxFile bounds a memory file in bytes. A day of 100 compactions with 50 facts each is under 3 MB.
const MaxFile = 8 << 20

// Folder is the prefix of an agent's files in the bucket.
func Folder(agent string) string { return "agents/" + agent + "/" }

// Day names the day of a time in the agent's zone.
func Day(t time.Time, zone *time.Location) string { return t.In(zoneOf(zone)).Format(dayFormat) }

// DayBefore names the day before that of a time. It counts calendar days, since a day may have 23
// or 25 hours.
func DayBefore(t time.Time, zone *time.Location) string {
	y, m, d := t.In(zoneOf(zone)).Date()
	return time.Date(y, m, d-1, 12, 0, 0, 0, time.UTC).Format(dayFormat)
}

func zoneOf(zone *time.Location) *time.Location {
	if zone == nil {
		return time.UTC
	}
	return zone
}

// Daily is the file of the owner's day.
func Daily(day string) string { return dailyFolder + day + extension }

// PeerDaily is the file of a day with someone who is not the owner.
func PeerDaily(peer, day string) string { return peersFolder + PeerName(peer) + "/" + day + extension }

// PeerName makes one path segment of a peer, and no two peers the same one: a colon becomes ~, and
// what no folder of any host is sure to hold becomes %XX.
func PeerName(peer string) string {
	var b strings.Builder
	for _, c := range []byte(peer) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '@' || c == '+' || c == '.' && b.Len() > 0:
			b.WriteByte(c)
		case c == ':':
			b.WriteByte('~')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() > maxPeer {
		return b.String()[:maxPeer-17] + "%" + string(tidemark.HashOf([]byte(peer)))[:16]
	}
	return b.String()
}

// kind is what sort of file a path names.
type kind int

const (
	kindNone kind = iota
	kindLongTerm
	kindPersona
	kindDaily
	kindPeer
	kindDigest
)

// classify reads a path; peer is set for a peer's file. Anything that is not exactly a memory file
// has no kind.
func classify(path string) (k kind, peer string) {
	switch path {
	case LongTerm:
		return kindLongTerm, ""
	case Soul, Identity, Human, Instructions, ToolNotes:
		return kindPersona, ""
	}
	rest, ok := strings.CutSuffix(path, extension)
	if !ok {
		return kindNone, ""
	}
	if p, ok := strings.CutPrefix(rest, peersFolder); ok {
		peer, day, ok := strings.Cut(p, "/")
		if ok && isPeerName(peer) && isDay(day) {
			return kindPeer, peer
		}
		return kindNone, ""
	}
	if slug, ok := strings.CutPrefix(rest, digestFolder); ok || rest+extension == DigestFile || rest == strings.TrimSuffix(Suggestion(DigestFile), extension) {
		if !ok || isSlug(strings.TrimSuffix(slug, suggested)) {
			return kindDigest, ""
		}
		return kindNone, ""
	}
	if day, ok := strings.CutPrefix(rest, dailyFolder); ok && isDay(day) {
		return kindDaily, ""
	}
	return kindNone, ""
}

// isSlug accepts the names that detail files have.
func isSlug(s string) bool {
	const most = 40
	return s != "" && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// IsDigest reports the files that are made anew from the facts: none is a source of memory.
func IsDigest(path string) bool {
	k, _ := classify(path)
	return k == kindDigest
}

func isDay(s string) bool {
	_, err := time.Parse(dayFormat, s)
	return err == nil
}

// isPeerName accepts what PeerName gives.
func isPeerName(s string) bool {
	if s == "" || len(s) > maxPeer || s[0] == '.' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'F' || strings.ContainsRune("-_.@+~%", r))
	}) < 0
}

// CheckPath reports a path that names no memory file, whoever asks.
func CheckPath(path string) error {
	if k, _ := classify(path); k == kindNone {
		return fmt.Errorf("path %.80q is no memory file: want MEMORY.md, SOUL.md, IDENTITY.md, USER.md, AGENTS.md, TOOLS.md, memory/{YYYY-MM-DD}.md, memory/peers/{peer}/{YYYY-MM-DD}.md, memory/DIGEST.md or memory/digest/{name}.md: %w", path, tidemark.ErrInvalid)
	}
	return nil
}

// Curated reports the files that are edited and not appended to: MEMORY.md and the persona. Those of the digest
// are made anew, but never over an edit, see [IsDigest].
func Curated(path string) bool {
	k, _ := classify(path)
	return k == kindLongTerm || k == kindPersona
}

// Sharing says who sees the daily file of an agent.
type Sharing string

const (
	// SharePeer keeps what was learned from a peer to that peer and the owner; the default.
	SharePeer Sharing = "peer"
	// ShareAgent has one daily file for all sessions of an agent, as the paper describes it.
	ShareAgent Sharing = "agent"
)

// ParseSharing reads the setting memory.sharing; empty is the default.
func ParseSharing(s string) (Sharing, error) {
	switch Sharing(s) {
	case "", SharePeer:
		return SharePeer, nil
	case ShareAgent:
		return ShareAgent, nil
	}
	return "", fmt.Errorf("memory.sharing %.40q: want \"peer\" or \"agent\": %w", s, tidemark.ErrInvalid)
}

// Today is the daily file that a scope writes to and is shown, empty when it has none: without a
// name, a stranger's facts can be kept apart from nobody's.
func (s Sharing) Today(scope tidemark.Scope, day string) string {
	switch {
	case scope.Owner || s == ShareAgent:
		return Daily(day)
	case scope.Peer == "":
		return ""
	}
	return PeerDaily(scope.Peer, day)
}

// MayRead is the rule for prompts and tools alike. MEMORY.md and the persona belong to the owner's
// main session, daily files to the owner (to everybody with [ShareAgent]), a peer's files to that
// peer and the owner; everything else is refused. A refusal is ErrForbidden and says the same
// whether or not the file exists.
func (s Sharing) MayRead(scope tidemark.Scope, path string) error {
	k, peer := classify(path)
	allowed := false
	switch k {
	case kindLongTerm, kindPersona:
		allowed = scope.Main()
	case kindDaily:
		allowed = scope.Owner || s == ShareAgent
	case kindDigest: // of the owner's facts, whoever shares the days
		allowed = scope.Owner
	case kindPeer:
		allowed = scope.Owner || scope.Peer != "" && peer == PeerName(scope.Peer)
	}
	if !allowed {
		return fmt.Errorf("file %.80q is not for this conversation: %w", path, tidemark.ErrForbidden)
	}
	return nil
}

// MayWrite is the rule for what may be changed: what may be read, and of daily files by a peer only
// the one that the agent keeps for it.
func (s Sharing) MayWrite(scope tidemark.Scope, path string) error {
	return s.MayRead(scope, path) // each reader of a file is one of its writers; edits are for Curated files
}

// Edit replaces the one occurrence of old in a file. An empty old adds new at the end.
func Edit(file, old, replacement string) ([]byte, error) {
	var out string
	switch n := strings.Count(file, old); {
	case old == "" && file == "":
		out = replacement
	case old == "":
		out = strings.TrimRight(file, "\n") + "\n" + replacement
	case n == 0:
		return nil, fmt.Errorf("edit: the old text is not in the file; read it again and copy the text exactly: %w", tidemark.ErrInvalid)
	case n > 1:
		return nil, fmt.Errorf("edit: the old text occurs %d times; give more of what stands around it: %w", n, tidemark.ErrInvalid)
	default:
		out = strings.ReplaceAll(file, old, replacement)
	}
	if len(out) > MaxFile {
		return nil, fmt.Errorf("edit: the file would have %d bytes, at most %d: %w", len(out), MaxFile, tidemark.ErrTooLarge)
	}
	return []byte(out), nil
}
