package host

import "github.com/tidemark-ai/tidemark"

// LogEnd is behind every position of a log.
const LogEnd int64 = 1 << 53

// Lineage is all that a session may look into: its own logs, and what these continue as branches, each up to where a branch
// of it begins.
type Lineage struct {
	Key    tidemark.Key
	Ends   []any  // the first and the last key of the conversation: a client's has all of its tracks between them
	Logs   string // JSON object from log to position
	UpTo   map[string]int64
	Own    map[string]bool // logs of its own key
	Keys   []string        // of sessions that they are of, its own first
	Single bool            // only logs of its own key, whole: nothing need be asked of single messages
}

// Before is the condition that entries under an alias are not behind where a branch begins, by Logs: it needs no index.
func (l *Lineage) Before(alias string) string {
	return alias + `.seq <= coalesce(json_extract(?, '$."' || ` + alias + `.log || '"'), 0)`
}
