// Package toolbox joins the tools of others: servers that speak MCP, and modules. How a source is reached is for package
// mcp and wasi, whether the owner allows a call is for the session. Begin with [Box], which knows who may use which
// tools, how many tokens their definitions may take, and how long and how large a call may be.
//
// Nothing that a source says is trusted, neither names nor descriptions nor results. A source that is slow or down costs
// bounded time and affects no other.
package toolbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Source is a place that tools come from. Its methods may be called at once.
//
// # Errors
//
// What a tool itself says went wrong is no error but a result with is_error. Of errors, ErrUnavailable is a failure
// on the way, after which the same call may be made again if it is idempotent; ErrInvalid are arguments that the
// source refuses; ErrNotFound is a tool that it does not have; ErrTooLarge an answer over its bound.
type Source interface {
	// Tools lists what the source has, under its own names. Idempotent is what it says of itself.
	Tools(ctx context.Context) ([]tidemark.Tool, error)
	// Call runs a tool, under its own name.
	Call(ctx context.Context, call tidemark.Block) (tidemark.Block, error)
}

// Teller is what a Source is beside that has more to say of its list.
type Teller interface {
	// Fresh is how long the last list is good, 0 for whatever the box thinks, and a number that grows when the
	// source says that its list is another now.
	Fresh() (ttl time.Duration, change int64)
	// Version is of the protocol that is spoken, empty while nothing was.
	Version() string
}

// Marker is a Source whose own configuration may change while it is in use, as a folder of modules does.
type Marker interface {
	// Mark names what it is now: another mark, other tools. It is cheap.
	Mark() string
}

// Server is a source as it is configured. The zero value of every field but Source is its default.
type Server struct {
	// Name stands before the names of its tools. Empty: they are modules, and keep their names.
	Name   string
	Source Source // nil: it cannot be used here, and Gap says why
	Gap    string

	Allow      []string // globs of the tools that are used, by their own names; nil: all
	Idempotent []string // globs of the tools that may be called again
	TrustHints bool     // and those of which the source says so
	Timeout    time.Duration
	MaxBytes   int // of a result
	Parallel   int // calls at a time
	// Hide are secrets that the source has: what it says of them is not passed on.
	Hide []string
}

// Defaults of a Server, and of a Config.
const (
	DefaultTimeout      = time.Minute
	DefaultMaxBytes     = 4 << 20
	DefaultParallel     = 8
	DefaultSchemaTokens = tidemark.Tokens(4_000)
)

// Bounds of what sources say. What is beyond is cut, or left out and named in the state.
const (
	maxName        = 64 // bytes of a tool's name, as model APIs take them
	maxDescription = 2 << 10
	maxSchema      = 16 << 10
	maxTools       = 200 // of a source
	maxAll         = 500 // of all together
	maxOffers      = 1024
)

// Bounds of time.
const (
	listTimeout = 10 * time.Second // for one list of one source
	staleWait   = 2 * time.Second  // for a newer list, where there is an old one
	defaultTTL  = 5 * time.Minute
	minTTL      = 10 * time.Second
	maxTTL      = time.Hour
	firstRetry  = 5 * time.Second // after a list failed; doubled up to defaultTTL
)

// Config is what a box holds.
type Config struct {
	Servers []Server
	Name    string // names all of the configuration, see Box.Mark
	Runtime tidemark.Runtime
	Logger  *slog.Logger // nil: no logging; it never gets content
	// SchemaTokens is what all definitions that are offered together may take before they are offered as stubs, 0 for
	// the default; below it they always are.
	SchemaTokens tidemark.Tokens
	// Agents are globs of what an agent may use, by its name; one that is not in it may use all.
	Agents map[string][]string
	// Peers are globs of what may be used where it is not the owner who speaks; nil: nothing.
	Peers []string
	// Reserved are names that modules may not have: tools of our own.
	Reserved []string
}
