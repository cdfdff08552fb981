// Package archive keeps conversations in a bucket as gzipped JSON lines, at the paths of the
// reference, so that `zcat | jq` reads ours and we read theirs. Which entries belong to a part, and
// restoring a session, are for package session. Begin with [Pack].
//
// A part holds a span that left the view; a whole file holds a session at its reset and is the
// concatenation of its parts and its tail. An archive is written once, under a condition, and never
// updated. A line is one message, its own bytes first, then fields of ours:
//
//	{"role":"user","content":"…","timestamp":1763689000123,"id":"01K…"}
package archive

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

const (
	partMark    = "-part"
	suffix      = ".jsonl.gz"
	contentType = "application/gzip"
)

// Info describes one archive: what its object metadata and its line in the index say.
type Info struct {
	Key        string           `json:"key"` // of the object
	SessionKey tidemark.Key     `json:"sessionKey"`
	Session    string           `json:"sessionId"`
	Agent      string           `json:"agentId"`
	Part       int64            `json:"partNumber,omitempty"` // 1 and up; 0 for a whole session
	Messages   int              `json:"messageCount"`
	At         time.Time        `json:"archivedAt"`
	First      tidemark.EntryID `json:"firstId,omitempty"` // of the first message
	Last       tidemark.EntryID `json:"lastId,omitempty"`
	Bytes      int64            `json:"bytes"`              // as stored
	RawBytes   int64            `json:"rawBytes,omitempty"` // of the lines
	SHA256     tidemark.Hash    `json:"sha256,omitempty"`   // of the bytes as stored
	Usage      tidemark.Usage   `json:"usage,omitzero"`     // whole sessions only
}

// Whole reports whether the archive holds a whole session.
func (i Info) Whole() bool {
	_, _, at, ok := ParseKey(i.Key)
	return ok && at.IsZero()
}

// Folder is the prefix of an agent's archives.
func Folder(agent string) string { return "agents/" + agent + "/sessions/" }

// PartKey is where a span goes that left the view. at comes from the plan and stays the same when
// the plan is carried out again.
func PartKey(agent, session string, at time.Time) string {
	return Folder(agent) + session + partMark + strconv.FormatInt(at.UnixMilli(), 10) + suffix
}

// WholeKey is where a session goes at its reset.
func WholeKey(agent, session string) string { return Folder(agent) + session + suffix }

// ParseKey reads what a key says: agent, session, and the time of a part (zero for a whole
// session). ok is false for any other object.
func ParseKey(key string) (agent, session string, at time.Time, ok bool) {
	rest, found := strings.CutPrefix(key, "agents/")
	agent, file, found2 := strings.Cut(rest, "/sessions/")
	session, found3 := strings.CutSuffix(file, suffix)
	if !found || !found2 || !found3 || session == "" || strings.Contains(agent, "/") || strings.Contains(session, "/") {
		return "", "", time.Time{}, false
	}
	if i := strings.LastIndex(session, partMark); i > 0 {
		if ms, err := strconv.ParseInt(session[i+len(partMark):], 10, 64); err == nil {
			return agent, session[:i], time.UnixMilli(ms).UTC(), true
		}
	}
	return agent, session, time.Time{}, true
}

// stamp is the time format of the reference's metadata (JavaScript's toISOString).
const stamp = "2006-01-02T15:04:05.000Z07:00"

// metadata is what the object itself says. The token totals count cached input too, as bills do.
func (i Info) metadata() map[string]string {
	m := map[string]string{
		"sessionKey": string(i.SessionKey), "sessionId": i.Session, "agentId": i.Agent,
		"messageCount": strconv.Itoa(i.Messages), "archivedAt": i.At.UTC().Format(stamp),
	}
	if i.RawBytes > 0 {
		m["rawBytes"] = strconv.FormatInt(i.RawBytes, 10)
	}
	for key, v := range map[string]string{"firstId": string(i.First), "lastId": string(i.Last), "sha256": string(i.SHA256)} {
		if v != "" {
			m[key] = v
		}
	}
	if !i.Whole() {
		m["partNumber"] = strconv.FormatInt(i.Part, 10)
		return m
	}
	in := i.Usage.Input + i.Usage.CacheRead + i.Usage.CacheCreation
	m["inputTokens"] = strconv.FormatInt(int64(in), 10)
	m["outputTokens"] = strconv.FormatInt(int64(i.Usage.Output), 10)
	m["totalTokens"] = strconv.FormatInt(int64(in+i.Usage.Output), 10)
	return m
}

// describe reads an object's metadata, ours or the reference's; what is missing comes from its key.
func describe(o tidemark.Object) (Info, error) {
	agent, session, at, ok := ParseKey(o.Key)
	if !ok {
		return Info{}, fmt.Errorf("archive %s: not the key of an archive: %w", o.Key, tidemark.ErrInvalid)
	}
	m := o.Metadata
	i := Info{
		Key: o.Key, Agent: agent, Session: session, At: at, Bytes: o.Size, SessionKey: tidemark.Key(m["sessionKey"]),
		First: tidemark.EntryID(m["firstId"]), Last: tidemark.EntryID(m["lastId"]), SHA256: tidemark.Hash(m["sha256"]),
		Part: number(m["partNumber"]), Messages: int(number(m["messageCount"])), RawBytes: number(m["rawBytes"]),
		Usage: tidemark.Usage{Input: tidemark.Tokens(number(m["inputTokens"])), Output: tidemark.Tokens(number(m["outputTokens"]))},
	}
	switch t, err := time.Parse(time.RFC3339, m["archivedAt"]); {
	case err == nil:
		i.At = t.UTC()
	case number(m["archivedAt"]) > 0:
		i.At = time.UnixMilli(number(m["archivedAt"])).UTC()
	case i.At.IsZero():
		i.At = o.Modified.UTC()
	}
	return i, nil
}

// number reads a count; what is none is 0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
