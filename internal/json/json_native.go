//go:build !js

package json

import (
	"io"

	"github.com/goccy/go-json"
)

func newEncoder(w io.Writer) *json.Encoder { return json.NewEncoder(w) }

func unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
