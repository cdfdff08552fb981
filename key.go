package tidemark

import (
	"fmt"
	"strings"
)

// Key names a conversation: "agent:{agent}:main" for the owner's main session, else
// "agent:{agent}:{channel}:{kind}:{peer}"; "#{branch}" behind it names a branch.
type Key string

// ChannelSchedule is the channel of the conversations that schedules of the owner run in.
const ChannelSchedule = "schedule"

// maxKeyPart bounds each part of a key in bytes.
const maxKeyPart = 128

// ParseKey reads a key that a person or a client typed, in lower case. A bare name is a conversation of the
// default agent: "main" is agent:main:main, "garden" is agent:main:local:dm:garden. Case does not
// matter.
func ParseKey(s string) (Key, error) {
	root, branch, branched := strings.Cut(s, "#")
	parts := strings.Split(root, ":")
	switch {
	case len(parts) == 1 && strings.EqualFold(parts[0], "main"):
		parts = []string{"agent", "main", "main"}
	case len(parts) == 1:
		parts = []string{"agent", "main", "local", "dm", parts[0]}
	}
	if !strings.EqualFold(parts[0], "agent") || len(parts) != 3 && len(parts) != 5 || len(parts) == 3 && !strings.EqualFold(parts[2], "main") {
		return "", fmt.Errorf("session key %q: want a name, \"agent:{agent}:main\" or \"agent:{agent}:{channel}:{kind}:{peer}\": %w", clip(s), ErrInvalid)
	}
	for i, p := range parts {
		if parts[i] = cleanPart(p, i == 1); parts[i] == "" || len(p) > maxKeyPart {
			return "", fmt.Errorf("session key %q: part %d must have 1 to %d of a-z, 0-9, - and _, behind the agent also . @ and +: %w", clip(s), i+1, maxKeyPart, ErrInvalid)
		}
	}
	key := strings.Join(parts, ":")
	if branched {
		if branch = cleanPart(branch, false); branch == "" || len(branch) > maxKeyPart {
			return "", fmt.Errorf("session key %q: the branch name after # must have 1 to %d of a-z, 0-9, - _ . @ and +: %w", clip(s), maxKeyPart, ErrInvalid)
		}
		key += "#" + branch
	}
	return Key(key), nil
}

// cleanPart lowers s; it is empty when s holds what a key may not. Nothing is replaced: two names
// that differ must not become one conversation. Agent ids go into bucket paths, so they allow less.
func cleanPart(s string, agent bool) string {
	out := strings.ToLower(s)
	for _, r := range s { // s itself: letters beyond ASCII may lower to a plain one
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
		if !plain && (agent || r != '.' && r != '@' && r != '+') {
			return ""
		}
	}
	if strings.Trim(out, ".") == "" {
		return ""
	}
	return out
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// Agent returns the agent that owns the conversation.
func (k Key) Agent() string { return k.part(1) }

// Channel returns how the conversation is held; empty for the main session.
func (k Key) Channel() string {
	if k.Main() {
		return ""
	}
	return k.part(2)
}

// Kind returns dm, group, …; empty for the main session.
func (k Key) Kind() string { return k.part(3) }

// Peer returns with whom; empty for the main session.
func (k Key) Peer() string { return k.part(4) }

// Root returns the key without its branch.
func (k Key) Root() Key {
	root, _, _ := strings.Cut(string(k), "#")
	return Key(root)
}

// Main reports whether this is the owner's main session, or a branch of it.
func (k Key) Main() bool {
	return strings.Count(string(k.Root()), ":") == 2
}

// ChannelDelegate is the channel of conversations that another one of the agent delegated work to.
const ChannelDelegate = "delegate"

// ChannelImport is the channel of messages that were imported.
const ChannelImport = "import"

// ChannelProxy is the channel of conversations of clients that keep their history themselves.
const ChannelProxy = "proxy"

// Local reports a conversation that only the holder of the token can reach: the main session and
// those opened by the command line, the page or the API, also those of clients that keep their history
// themselves. So are the runs of schedules, and those that an owner's conversation delegated to: nobody
// else's may. All others belong to a channel's peer, also those of the end users whom an API client names ("user").
func (k Key) Local() bool {
	switch k.Channel() {
	case "", "local", "web", "api", "cli", ChannelProxy, ChannelSchedule, ChannelDelegate:
		return true
	}
	return false
}

// Scope returns on whose behalf the conversation runs.
func (k Key) Scope() Scope {
	s := Scope{Agent: k.Agent(), Key: k, Owner: k.Local()}
	if !s.Owner {
		s.Peer = k.Channel() + ":" + k.Peer()
	}
	return s
}

func (k Key) part(i int) string {
	parts := strings.Split(string(k.Root()), ":")
	if i >= len(parts) {
		return ""
	}
	return parts[i]
}
