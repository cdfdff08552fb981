package paging

import "github.com/tidemark-ai/tidemark"

// Account is what paging did with a call of a model, and in all calls of the conversation so far.
type Account struct {
	Zone  string          `json:"zone"` // normal, advisory, involuntary, aggressive
	Size  tidemark.Tokens `json:"size"` // as the zone was decided on, before anything left
	Fill  float64         `json:"fill"` // of the window, in percent
	Tau   int             `json:"tau"`  // age that is asked for now: thrashing raises it
	Stubs int             `json:"stubs"`
	Out   int             `json:"outBytes"` // what they stand for

	Evicted   int `json:"evicted"`   // with this call: results of reads
	Collected int `json:"collected"` // other results
	Inputs    int `json:"inputs"`
	Images    int `json:"images"`
	Pins      int `json:"pins"`
	In        int `json:"bytesIn"` // of the messages as JSON, with nothing replaced and as they were sent
	Sent      int `json:"bytesSent"`

	Faults []Faulted `json:"faults,omitempty"` // the newest
	Totals Sum       `json:"totals"`
}

// Faulted is a read of what had been evicted.
type Faulted struct {
	Call string `json:"call"` // that reads
	Of   string `json:"of"`   // the call whose result was out
	Path string `json:"path"`
}

// Sum is what paging did in a conversation.
type Sum struct {
	Calls     int   `json:"calls"`
	Evicted   int   `json:"evicted"`
	Collected int   `json:"collected"`
	Inputs    int   `json:"inputs"`
	Images    int   `json:"images"`
	Faults    int   `json:"faults"`
	Pins      int   `json:"pins"`
	In        int64 `json:"bytesIn"`
	Sent      int64 `json:"bytesSent"`
}
