package probe

import "math"

// Kind is what a block is.
type Kind uint8

// The kinds of blocks.
const (
	Result   Kind = iota // what a tool gave, without images in it
	Input                // a call of a tool
	Reply                // text of the model
	Person               // text of a person
	Thinking             // of the model
	Image                // and documents
	System               // reminders, summaries and other text that the tool wrote in somebody's name
	Unknown              // blocks of other types
	kinds
)

// kindNames are the kinds as reports have them.
var kindNames = [kinds]string{"tool results", "tool inputs", "model text", "person text", "thinking", "images", "system", "other"}

// Part is a part of what was sent.
type Part uint8

// The parts of what was sent; all but InUse are waste in the paper's sense.
const (
	Definitions Part = iota // of tools that the session had not used yet
	Static                  // what stands before the messages, sent again
	Doubled                 // reminders and skills that stood in the context already
	Repeated                // results of which a newer copy stood there
	Dead                    // results that were old and never asked for again
	InUse                   // the rest
	parts
)

var partNames = [parts]string{"unused definitions", "static re-sent", "doubled reminders", "repeated reads", "dead results", "in use"}

// Files is what was found where one looked.
type Files struct {
	Logs    int   `json:"logs"`
	Bytes   int64 `json:"bytes"`
	Small   int   `json:"small"`         // below the minimum size
	Copies  int   `json:"copies"`        // equal to another, byte for byte
	Unread  int   `json:"unread"`        // that could not be read to the end
	Damaged int   `json:"damaged_lines"` // passed over
}

// Protocol is how was counted.
type Protocol struct {
	Version     int    `json:"version"`
	MinSize     int64  `json:"min_size"`
	Dedup       string `json:"dedup"`
	DeadAge     int    `json:"dead_age"`
	DeadSize    int    `json:"dead_size"`
	Definitions string `json:"definitions"` // "paper" or "given"
}

// Share is a part of a whole.
type Share struct {
	Name  string  `json:"name"`
	Bytes int64   `json:"bytes"`
	Share float64 `json:"share"`
}

// Spread is how a figure is spread over sessions, between neighbours in proportion.
type Spread struct {
	Sessions int     `json:"sessions"`
	Median   float64 `json:"median"`
	P75      float64 `json:"p75"`
	P90      float64 `json:"p90"`
}

// ClassReport is about the sessions of one class.
type ClassReport struct {
	Class         Class  `json:"class"`
	Sessions      int    `json:"sessions"`
	Calls         int    `json:"calls"`
	Content       int64  `json:"content"` // bytes, each once
	Input         int64  `json:"input"`   // tokens reported, cached ones included
	Output        int64  `json:"output"`
	Amplification Spread `json:"amplification"`
}

// ToolReport is about one tool.
type ToolReport struct {
	Name     string  `json:"name"`
	Sessions int     `json:"sessions"`
	Adoption float64 `json:"adoption"` // share of the active sessions
	Calls    int     `json:"calls"`
	Results  int     `json:"results"`
	Bytes    int64   `json:"bytes"` // of the results
	Share    float64 `json:"share"` // of the bytes of all results
	Mean     float64 `json:"mean"`  // bytes of a result
}

// ToolsReport is about all.
type ToolsReport struct {
	Known  int          `json:"known"`  // tools that were used or whose definition was given
	Active int          `json:"active"` // sessions with a call of the model
	Median float64      `json:"median"` // tools that an active session used
	List   []ToolReport `json:"list"`
}

// UsageReport is what the API reported.
type UsageReport struct {
	Calls      int     `json:"calls"` // with figures
	Input      int64   `json:"input"` // tokens that no cache had a part in
	Created    int64   `json:"cache_creation"`
	Read       int64   `json:"cache_read"`
	Effective  int64   `json:"effective_input"` // the three together
	Output     int64   `json:"output"`
	CacheRead  float64 `json:"cache_read_ratio"` // of the effective input
	PerCall    float64 `json:"input_per_call"`
	InOut      float64 `json:"input_per_output"`
	InOutBytes float64 `json:"input_per_output_by_bytes"` // the output taken from the size of the replies
}

// TokensReport says how bytes were made tokens.
type TokensReport struct {
	BytesPerToken float64 `json:"bytes_per_token"`
	Basis         string  `json:"basis"`     // "usage" or "estimator"
	Pairs         int     `json:"pairs"`     // of calls that it was measured on
	Explained     float64 `json:"explained"` // of the reported input, by the bytes of the log and what stands before them
}

// SentReport is what was sent: for each call, all that was in its context.
type SentReport struct {
	Bytes  int64   `json:"bytes"`
	Prefix float64 `json:"prefix_tokens"` // before the messages, mean of the calls that tell
	Parts  []Share `json:"parts"`
}

// Saving is what a treatment would save.
type Saving struct {
	Treatment string  `json:"treatment"`
	Tokens    int64   `json:"tokens"`
	Share     float64 `json:"share"` // of the input
	PerCall   float64 `json:"per_call"`
	Basis     string  `json:"basis"`
}

// Projection is the paper's table 6, and behind it what its text adds.
type Projection struct {
	Input  int64    `json:"input"` // tokens that the shares are of
	Basis  string   `json:"basis"`
	Rows   []Saving `json:"rows"`
	Table6 Saving   `json:"table6"` // the first three rows
	All    Saving   `json:"all"`
}

// SessionReport is a line for one session.
type SessionReport struct {
	Session       string  `json:"session"` // a hash of its calls
	Class         Class   `json:"class"`
	Calls         int     `json:"calls"`
	Tools         int     `json:"tools"`
	Content       int64   `json:"content"`
	Sent          int64   `json:"sent"`
	Waste         float64 `json:"waste"` // share of what was sent
	Amplification float64 `json:"amplification"`

	Kinds [kinds]int64 `json:"-"`
	Parts [parts]int64 `json:"-"`
}

// Report is what a corpus was. It depends on the logs alone, not on their places and order.
type Report struct {
	Date       string          `json:"date"`
	Corpus     string          `json:"corpus"` // a hash of its sessions
	Protocol   Protocol        `json:"protocol"`
	Files      Files           `json:"files"`
	Sessions   int             `json:"sessions"`
	Held       int             `json:"held"` // sessions of which another holds all calls
	Calls      int             `json:"calls"`
	Classes    []ClassReport   `json:"classes"`
	Content    int64           `json:"content"`
	Kinds      []Share         `json:"kinds"`
	Tools      ToolsReport     `json:"tools"`
	Usage      UsageReport     `json:"usage"`
	Tokens     TokensReport    `json:"tokens"`
	Sent       SentReport      `json:"sent"`
	Projection Projection      `json:"projection"`
	List       []SessionReport `json:"list"`
}

// ratio is a / b to six places, 0 when there is no b: figures are to be the same on every machine.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	const places = 1e6
	return math.Round(a/b*places) / places
}

// shares makes parts of a whole.
func shares(names []string, bytes []int64) (out []Share) {
	sum := int64(0)
	for _, n := range bytes {
		sum += n
	}
	for i, n := range bytes {
		out = append(out, Share{names[i], n, ratio(float64(n), float64(sum))})
	}
	return out
}

// quantile of sorted values, between neighbours in proportion.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	return ratio(sorted[i]+(sorted[i+1]-sorted[i])*(at-float64(i)), 1)
}
