package json

import (
	"encoding/json"
	"io"
)

func newEncoder(w io.Writer) *json.Encoder { return json.NewEncoder(w) }

func unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
