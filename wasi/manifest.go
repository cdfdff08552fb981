package wasi

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/internal/near"
)

// Bounds of a tool and what a manifest without a member says. Sizes are in bytes, where no other unit is named.
const (
	MaxModule      = 64 << 20
	MaxManifest    = 64 << 10
	MaxDescription = 4 << 10
	MaxName        = 64

	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 5 * time.Minute
	DefaultMemory  = 64 // MB
	MaxMemory      = 1024
	DefaultOutput  = 1 << 20
	MaxOutput      = 16 << 20
	DefaultInput   = 1 << 20
	MaxInput       = 16 << 20
)

// Manifest is what tool.json says of a tool. Zero members mean the defaults above.
type Manifest struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	// Idempotent says that a call which may have run may be run again.
	Idempotent     bool `json:"idempotent,omitempty"`
	TimeoutMs      int  `json:"timeoutMs,omitempty"`
	MemoryMB       int  `json:"memoryMB,omitempty"`
	MaxOutputBytes int  `json:"maxOutputBytes,omitempty"`
	MaxInputBytes  int  `json:"maxInputBytes,omitempty"`
	// Mount is a folder of this machine, absolute, that the module reads as /data.
	Mount string `json:"mount,omitempty"`
}

var members = []string{"name", "description", "input_schema", "idempotent", "timeoutMs", "memoryMB", "maxOutputBytes", "maxInputBytes", "mount"}

// ParseManifest decodes a manifest and checks all of it but the mount's existence.
//
// # Errors
//
// tidemark.ErrTooLarge over MaxManifest, tidemark.ErrInvalid with the member and the fix for everything else.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if len(data) > MaxManifest {
		return m, fmt.Errorf("manifest: %d bytes, at most %d: %w", len(data), MaxManifest, tidemark.ErrTooLarge)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || raw == nil {
		return m, wrongf("want a JSON object with name, description and input_schema: %v", cmpErr(err))
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if slices.Contains(members, name) {
			continue
		}
		if n := near.Name(name, members); n != "" {
			return m, wrongf("%q is no member of a manifest; did you mean %q?", name, n)
		}
		return m, wrongf("%q is no member of a manifest; there are %s", name, strings.Join(members, ", "))
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, wrongf("a member has the wrong type: %v", err)
	}
	if bytes.Equal(m.InputSchema, []byte("null")) {
		m.InputSchema = nil
	}
	if err := m.Check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

func cmpErr(err error) any {
	if err == nil {
		return "it is null"
	}
	return err
}

func wrongf(format string, args ...any) error {
	return fmt.Errorf("manifest: "+format+": %w", append(args, tidemark.ErrInvalid)...)
}

// Check reports the first thing that is wrong with a manifest, as tidemark.ErrInvalid.
func (m Manifest) Check() error {
	if err := checkName(m.Name); err != nil {
		return err
	}
	if strings.TrimSpace(m.Description) == "" {
		return wrongf("\"description\" is missing; say in a sentence or two what the tool does and when to use it, for the model")
	}
	if len(m.Description) > MaxDescription {
		return wrongf("\"description\" has %d bytes, at most %d; the model pays for it with every call", len(m.Description), MaxDescription)
	}
	if _, err := parseSchema(m.InputSchema); err != nil {
		return err
	}
	for _, n := range []struct {
		name      string
		got, most int
	}{
		{"timeoutMs", m.TimeoutMs, int(MaxTimeout.Milliseconds())},
		{"memoryMB", m.MemoryMB, MaxMemory},
		{"maxOutputBytes", m.MaxOutputBytes, MaxOutput},
		{"maxInputBytes", m.MaxInputBytes, MaxInput},
	} {
		if n.got < 0 || n.got > n.most {
			return wrongf("%q is %d; want 1 to %d, or leave it out for the default", n.name, n.got, n.most)
		}
	}
	if m.Mount != "" && (!filepath.IsAbs(m.Mount) || strings.ContainsRune(m.Mount, 0)) {
		return wrongf("\"mount\" is %q; want the absolute path of a folder", m.Mount)
	}
	return nil
}

func checkName(name string) error {
	ok := name != "" && len(name) <= MaxName
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return wrongf("\"name\" is %q; want 1 to %d of a-z, 0-9, _ and -", name, MaxName)
	}
	if strings.Contains(name, "__") {
		return wrongf("\"name\" is %q; want one without __, which stands between a server and its tools", name)
	}
	return nil
}

// limits are a manifest's, with the defaults in place.
type limits struct {
	time          time.Duration
	pages         uint32 // of 64 KB
	output, input int
}

func (m Manifest) limits() limits {
	or := func(n, otherwise int) int {
		if n > 0 {
			return n
		}
		return otherwise
	}
	const pagesPerMB = 16
	return limits{
		time:   time.Duration(or(m.TimeoutMs, int(DefaultTimeout.Milliseconds()))) * time.Millisecond,
		pages:  uint32(or(m.MemoryMB, DefaultMemory) * pagesPerMB), //nolint:gosec // at most MaxMemory
		output: or(m.MaxOutputBytes, DefaultOutput),
		input:  or(m.MaxInputBytes, DefaultInput),
	}
}
