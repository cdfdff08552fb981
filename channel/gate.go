package channel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-ai/tidemark"
)

// Access says who may talk over a channel.
type Access string

// The values of [Access]. The owner may always.
const (
	AccessOwner   Access = "owner"   // nobody else
	AccessPairing Access = "pairing" // whom the owner let in by a code
	AccessAllow   Access = "allow"   // those, and whom a list names
	AccessOpen    Access = "open"    // everyone
)

// Scopes of direct messages: who shares a conversation.
const (
	ScopeMain           = "main"
	ScopePeer           = "per-peer"
	ScopeChannelPeer    = "per-channel-peer"
	ScopeAccountChannel = "per-account-channel-peer"
)

// Rules are what a configuration says of a channel. The zero value lets nobody in but the owner.
type Rules struct {
	Agent   string // whose conversations they are
	Account string // of ours that alone is answered; empty: all
	Access  Access
	Allow   []string // numbers and ids that may talk, whatever Access but owner says
	Groups  bool     // groups are answered, when we are mentioned
	DMScope string   // empty: per-channel-peer
}

// Standing is what a person is to an agent.
type Standing string

// The values of [Standing].
const (
	Stranger Standing = ""
	Approved Standing = "approved"
	Blocked  Standing = "blocked"
	Owner    Standing = "owner"
)

// Person is who is behind the names of a message.
type Person struct {
	Name     string   `json:"name"` // the one that keys are made of; it stays when the platform's names change
	Standing Standing `json:"standing,omitempty"`
	Names    []string `json:"names,omitempty"` // all that lead to them; empty for one who is not known

	// Was is what an owner of late was before, till Since; without a Since they are one for long.
	Was   Standing  `json:"was,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Verdict is what becomes of a message.
type Verdict struct {
	Key   tidemark.Key // of the conversation; empty: none
	Knock bool         // a stranger who may ask for a code
	Why   string       // of neither, for the log
}

// Listed reports whether the rules' own list names a person. A number matches in every way of writing
// it, any other name only as it is.
func (r Rules) Listed(names []string) bool {
	if r.Access == AccessOwner || r.Access == "" {
		return false
	}
	return slices.ContainsFunc(r.Allow, func(entry string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return sameName(entry, n) })
	})
}

// Welcome reports whether the rules let a person in whom the agent need not know.
func (r Rules) Welcome(names []string) bool { return r.Access == AccessOpen || r.Listed(names) }

// Decide says what becomes of a message from a person. It is pure.
func (r Rules) Decide(m Incoming, p Person) Verdict {
	listed := r.Listed(m.From) || r.Listed(p.Names)
	known := p.Standing == Owner || p.Standing == Approved && r.Access != AccessOwner && r.Access != "" || listed
	switch {
	case r.Account != "" && m.Reply.Account != r.Account:
		return Verdict{Why: "written to another account"}
	case p.Standing == Blocked:
		return Verdict{Why: "blocked"}
	case m.Group != "" && !r.Groups:
		return Verdict{Why: "groups are off"}
	case m.Group != "" && !m.Mentioned:
		return Verdict{Why: "not mentioned"}
	case known || r.Access == AccessOpen:
		return Verdict{Key: r.key(m, p)}
	case r.Access == AccessPairing && m.Group == "":
		return Verdict{Knock: true}
	}
	return Verdict{Why: "not let in"}
}

// then is a person as they stood when they wrote. Whoever became the owner since was in a conversation of their own:
// there a message that comes again is known, and in the main session it would be done once more.
func (r Rules) then(m Incoming, p Person) Person {
	if p.Standing != Owner || m.At.IsZero() || !m.At.Before(p.Since.Truncate(time.Second)) { // as platforms count
		return p
	}
	was := p
	if was.Standing = p.Was; r.Decide(m, was).Key == "" { // nobody did it
		return p
	}
	return was
}

// Commands reports whether what a person says there may be a command. In a group it concerns others,
// so there a stranger gives none.
func (r Rules) Commands(m Incoming, p Person) bool {
	return m.Group == "" || p.Standing == Owner || p.Standing == Approved || r.Listed(m.From) || r.Listed(p.Names)
}

// key names the conversation of a message. The owner's direct messages are the main session; those of
// others only where the rules put everyone there.
func (r Rules) key(m Incoming, p Person) tidemark.Key {
	channel, account := m.Reply.Platform, m.Reply.Account
	name := func(parts ...string) tidemark.Key {
		return tidemark.Key("agent:" + r.Agent + ":" + strings.Join(parts, ":"))
	}
	switch {
	case m.Group != "":
		return name(channel, "group", keyPart(account)+"+"+keyPart(m.Group))
	case p.Standing == Owner || r.DMScope == ScopeMain:
		return name("main")
	}
	return r.own(m, p.Name)
}

// own names the conversation that a person has for themselves.
func (r Rules) own(m Incoming, person string) tidemark.Key {
	channel, account := m.Reply.Platform, m.Reply.Account
	name := func(parts ...string) tidemark.Key {
		return tidemark.Key("agent:" + r.Agent + ":" + strings.Join(parts, ":"))
	}
	switch r.DMScope {
	case ScopePeer: // two platforms may give one number to two people
		return name("people", "dm", channel+"+"+keyPart(person))
	case ScopeAccountChannel:
		return name(channel, "dm", bounded(keyPart(account)+"+"+keyPart(person)))
	}
	return name(channel, "dm", keyPart(person))
}

// Bounds of a part of a key, which holds 128 bytes.
const (
	maxPart  = 60
	maxParts = 125
)

// keyPart writes a name so that it may stand in a key: two names that differ stay different. A byte
// that may not is _ and its two digits; a long name is its hash, which no other text becomes.
func keyPart(name string) string {
	var b strings.Builder
	dotted := strings.Trim(name, ".") == ""
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '@' || c == '.' && !dotted {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "_%02x", c)
	}
	switch out := b.String(); {
	case out == "":
		return "_none"
	case len(out) > maxPart:
		return hashed(name)
	default:
		return out
	}
}

func bounded(part string) string {
	if len(part) > maxParts {
		return hashed(part)
	}
	return part
}

func hashed(s string) string {
	const digits = 40
	sum := sha256.Sum256([]byte(s))
	return "_h" + hex.EncodeToString(sum[:])[:digits]
}

// sameName reports whether an entry of a list is a name of a platform's.
func sameName(entry, name string) bool {
	if entry = strings.TrimSpace(entry); entry == "" || name == "" {
		return false
	}
	if entry == name {
		return true
	}
	digits := number(entry)
	return digits != "" && digits == number(name)
}

// number gives the digits of a phone number in the international form, empty for what is none.
func number(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch {
		case c >= '0' && c <= '9':
			b.WriteRune(c)
		case c == '+' && i == 0, strings.ContainsRune(" -()./\u00a0", c):
		default:
			return ""
		}
	}
	const least = 5
	out := b.String()
	if len(out) < least {
		return ""
	}
	return strings.TrimPrefix(out, "00")
}

// Command reads what a person wrote to a bot as a command: one has its slash at the very start, and a word
// that is known. All else is a message. Whether what is behind the word is right, the session says.
func Command(text string) (word, rest string, ok bool) {
	if !strings.HasPrefix(text, "/") {
		return "", "", false
	}
	first := text
	if end := strings.IndexFunc(text, unicode.IsSpace); end >= 0 {
		first, rest = text[:end], strings.TrimSpace(text[end:])
	}
	if strings.HasPrefix(first, "//") {
		return "", "", false
	}
	word, _, err := tidemark.ParseCommand(first)
	if err != nil {
		return "", "", false
	}
	return word, rest, true
}
