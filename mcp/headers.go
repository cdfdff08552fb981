package mcp

import (
	"encoding/base64"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// bound is an argument that is sent as a header, too: x-mcp-header in the schema of a tool names it
// (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-headers).
type bound struct {
	path   []string
	header string
}

// Bounds of what a schema may ask for as headers.
const (
	maxHeaders     = 16
	maxHeaderDepth = 8
	maxHeaderValue = 4 << 10
)

type schema struct {
	Type       string                     `json:"type"`
	Header     string                     `json:"x-mcp-header"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// boundHeaders are the arguments of a schema that are sent as headers. What names no header of HTTP, or is no plain
// value, is left out: the server then says what it misses.
func boundHeaders(raw json.RawMessage, path []string) []bound {
	var s schema
	if len(path) > maxHeaderDepth || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	if s.Header != "" {
		if plain := s.Type == "string" || s.Type == "integer" || s.Type == "boolean"; !plain || !token(s.Header) {
			return nil
		}
		return []bound{{append([]string(nil), path...), "Mcp-Param-" + s.Header}}
	}
	var out []bound
	for name, p := range s.Properties {
		if out = append(out, boundHeaders(p, append(path, name))...); len(out) > maxHeaders {
			return out[:maxHeaders]
		}
	}
	return out
}

// value is an argument as a header has it, empty when it is not given or cannot be one.
func (b bound) value(arguments json.RawMessage) string {
	for _, name := range b.path {
		var object map[string]json.RawMessage
		if json.Unmarshal(arguments, &object) != nil {
			return ""
		}
		arguments = object[name]
	}
	var text string
	switch v := string(arguments); {
	case v == "" || v == "null" || v[0] == '{' || v[0] == '[':
		return ""
	case v[0] == '"':
		if json.Unmarshal(arguments, &text) != nil {
			return ""
		}
	default:
		text = v
	}
	if len(text) > maxHeaderValue {
		return ""
	}
	return headerValue(text)
}

// headerValue is a text as a header takes it: as it is, or in Base64 between marks.
func headerValue(s string) string {
	const begin, end = "=?base64?", "?="
	odd := s != strings.TrimSpace(s) || strings.HasPrefix(s, begin) && strings.HasSuffix(s, end) ||
		strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if !odd {
		return s
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(s)) + end
}

// token reports a name that a header of HTTP may have.
func token(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
