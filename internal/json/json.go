// Package json is the one way of this code base to JSON. It changes nothing of what encoding/json
// means: natively it is goccy/go-json, faster with the same bytes and verdicts, and in the Worker
// encoding/json itself, because there goccy is slow at first (RATIONALE, "Which libraries, and why
// these?"). Begin with [Marshal] and [Unmarshal].
package json

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
)

// Types of encoding/json that both implementations share.
type (
	// RawMessage is JSON kept as it came.
	RawMessage = stdjson.RawMessage
	// Number is a number kept as it came.
	Number = stdjson.Number
	// Marshaler encodes itself.
	Marshaler = stdjson.Marshaler
	// Unmarshaler decodes itself.
	Unmarshaler = stdjson.Unmarshaler
)

// Valid reports whether data is JSON.
func Valid(data []byte) bool { return stdjson.Valid(data) }

// Unmarked is a text without the byte order mark that some clients put before it; readers may step over one
// (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
func Unmarked(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// Compact appends src to dst without insignificant white space; numbers, key order and strings
// stay as they are.
func Compact(dst *bytes.Buffer, src []byte) error { return stdjson.Compact(dst, src) }

// Marshal encodes v without escaping <, > and &: text comes out as it went in.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := newEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// MarshalIndent is Marshal for people.
func MarshalIndent(v any) ([]byte, error) {
	raw, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := stdjson.Indent(&b, raw, "", "  "); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unmarshal decodes data into v.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v) }

// DecodeAny decodes any JSON value, with numbers kept as they came. More behind it is an error, as it is to [Unmarshal].
func DecodeAny(data []byte) (any, error) {
	d := stdjson.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if at := int(d.InputOffset()); len(bytes.TrimLeft(data[at:], " \t\r\n")) > 0 {
		return nil, fmt.Errorf("more behind the JSON value, which ends at byte %d", at)
	}
	return v, nil
}
