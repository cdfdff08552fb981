package trim

import (
	"encoding/base64"
	"fmt"
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Picture is an image or a document that stands in base64 in what was cut.
type Picture struct {
	Kind   string // its media type
	Handle string // the beginning of the SHA-256 of its file, as notes tell it
	nth    int    // of the blocks, from 0
}

// Pictures calls visit for each picture in what was cut: in the content of a result, or a block that is one itself. It
// returns how many blocks there are. What is no such JSON has none.
func Pictures(body io.Reader, visit func(Picture)) (blocks int, err error) {
	return pictures(body, func(p Picture, _ []byte) { visit(p) })
}

// Write writes the file that the picture was, from the same bytes that it was found in.
func (p Picture) Write(body io.Reader, w io.Writer) error {
	var file []byte
	_, err := pictures(body, func(one Picture, data []byte) {
		if one == p {
			file = data
		}
	})
	if err == nil && file == nil {
		err = fmt.Errorf("it is not there: %w", tidemark.ErrInvalid)
	}
	if err == nil {
		_, err = w.Write(file)
	}
	if err != nil {
		return fmt.Errorf("write the picture %s: %w", p.Handle, err)
	}
	return nil
}

// pictures calls visit for each picture with the file that it is.
func pictures(body io.Reader, visit func(Picture, []byte)) (int, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return 0, fmt.Errorf("look for pictures: %w", err)
	}
	var blocks []json.RawMessage
	if one := (map[string]json.RawMessage)(nil); json.Unmarshal(raw, &one) == nil && one != nil {
		blocks = []json.RawMessage{raw}
	} else if json.Unmarshal(raw, &blocks) != nil {
		blocks = nil // what is no list has no pictures
	}
	for i, raw := range blocks {
		var b struct {
			Type   string
			Source struct {
				Type string
				Kind string `json:"media_type"`
				Data *string
			}
		}
		if json.Unmarshal(raw, &b) != nil || b.Type != "image" && b.Type != "document" || b.Source.Type == "text" || b.Source.Data == nil {
			continue
		}
		file, err := base64.StdEncoding.DecodeString(*b.Source.Data)
		if err == nil {
			sum := handleOf(file)
			visit(Picture{Kind: mediaType([]byte(b.Source.Kind)), Handle: fmt.Sprintf("%x", sum), nth: i}, file)
		}
	}
	return len(blocks), nil
}
