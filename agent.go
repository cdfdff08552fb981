package tidemark

import "time"

// SessionInfo is what the agent's directory knows of a conversation. The session is the authority;
// the directory lags by up to a minute.
type SessionInfo struct {
	Key           Key       `json:"key"`
	ID            string    `json:"id"`                 // of its current log
	Previous      string    `json:"previous,omitempty"` // id before the last reset
	Title         string    `json:"title,omitempty"`    // what a person called it
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"` // last activity of a person or the model
	Messages      int       `json:"messages"`
	ContextTokens Tokens    `json:"contextTokens"`
	Window        Tokens    `json:"window"`
	Compactions   int       `json:"compactions"`
	Resets        int       `json:"resets"`
	Skipped       int       `json:"skipped,omitempty"` // messages that recall leaves out, see recall.reconcile
	Usage         Usage     `json:"usage"`             // all calls since the reset, summaries included
}

// Fact is one thing worth remembering beyond its session.
type Fact struct {
	Text    string    `json:"text"`              // one line
	Sources []EntryID `json:"sources,omitempty"` // the first and the last entry it was drawn from
	// Action is what the model that drew it said of it beside the facts that it was shown: ADD, or UPDATE or DELETE of
	// Target. Empty: it was not asked.
	Action string `json:"action,omitempty"`
	Target int64  `json:"target,omitempty"`
}

// Extraction is what one chunk of one compaction, or one reset, gave to remember. Its id, made of
// session, plan and chunk, makes storing it twice one act.
type Extraction struct {
	ID      string    `json:"id"`
	Session string    `json:"session"` // id of the log
	Scope   Scope     `json:"scope"`
	At      time.Time `json:"at"`
	Facts   []Fact    `json:"facts"`
}
