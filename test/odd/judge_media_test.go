package odd

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"image"
	_ "image/gif"  // read by the judge
	_ "image/jpeg" // read by the judge
	_ "image/png"  // read by the judge
	"net/http"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// medium holds a picture or a document against the rules
// (https://docs.anthropic.com/en/docs/build-with-claude/vision, …/pdf-support).
func (r *messagesRequest) medium(kind string, m map[string]json.RawMessage, at string) *refusal {
	src, ok := members(m["source"])
	if !ok {
		return &refusal{rule: "source", at: at + "." + kind + ".source", text: "Field required"}
	}
	media, _ := textOf(src["media_type"])
	data, _ := textOf(src["data"])
	switch way, _ := textOf(src["type"]); way {
	case "url":
		url, _ := textOf(src["url"])
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			return &refusal{rule: "source", at: at + "." + kind + ".source.url.url", text: "Only HTTP(S) URLs are supported"}
		}
		if r.gone(url) { // what it says of one that it cannot load: https://github.com/anthropics/anthropic-sdk-python/issues/1027
			return &refusal{text: "Unable to download the file. Please verify the URL and try again.", placeless: true}
		}
		return nil
	case "text":
		if kind != "document" || media != "text/plain" || data == "" {
			return &refusal{rule: "source", at: at + "." + kind + ".source", text: "text documents must not be empty"}
		}
		return nil
	case "base64":
	default:
		return &refusal{rule: "source", at: at + "." + kind + ".source", text: "Input tag '" + way + "' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'"}
	}
	r.hidden += len(data)
	if kind == "document" {
		if raw, err := base64.StdEncoding.DecodeString(data); err != nil || media != "application/pdf" || !bytes.HasPrefix(raw, []byte("%PDF")) {
			return &refusal{rule: "document", at: at + ".document.source.base64.data", text: "The PDF specified was not valid."}
		}
		return nil
	}
	return r.picture(media, data, at+".image.source.base64")
}

func (r *messagesRequest) picture(media, data, at string) *refusal {
	seen := r.look(data)
	is, w, h, broken := seen.is, seen.w, seen.h, seen.broken
	side := max(w, h)
	switch {
	case is == "no base64":
		return &refusal{rule: "base64", at: at, text: "invalid base64 data"}
	case len(data) > 5<<20:
		return &refusal{rule: "size of a picture", at: at, text: fmt.Sprintf("image exceeds 5 MB maximum: %d bytes > %d bytes", len(data), 5<<20)}
	case is != media:
		return &refusal{rule: "type of a picture", at: at, text: fmt.Sprintf("The image was specified using the %s media type, but the image appears to be a %s image", media, is)}
	case broken: // no documentation says so, and nobody says where: https://github.com/anthropics/claude-code/issues/1747
		return &refusal{text: "Could not process image", placeless: true}
	case side > 8000:
		return &refusal{rule: "side of a picture", at: at + ".data", text: "At least one of the image dimensions exceed max allowed size: 8000 pixels"}
	case r.pictures > 20 && side > 2000:
		return &refusal{rule: "many pictures", at: at + ".data", text: "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}
	}
	return nil
}

// seen is what a picture is.
type seen struct {
	is     string
	w, h   int
	broken bool
}

// look decodes a picture, once.
func (j *judge) look(data string) seen {
	h := fnv.New64a()
	_, _ = h.Write([]byte(data)) // a hash takes all
	key := strconv.FormatUint(h.Sum64(), 36)
	if s, ok := j.looked[key]; ok {
		return s
	}
	s := seen{is: "no base64"}
	if raw, err := base64.StdEncoding.DecodeString(data); err == nil && len(raw) > 0 {
		s.is = http.DetectContentType(raw)
		c, _, err := image.DecodeConfig(bytes.NewReader(raw))
		if err == nil {
			s.w, s.h = c.Width, c.Height
			_, _, err = image.Decode(bytes.NewReader(raw))
		}
		s.broken = err != nil
	}
	j.looked[key] = s
	return s
}

// lasting is how many requests may load a picture whose address says that it goes.
const lasting = 3

// gone reports the address of a picture that can be loaded no longer.
func (j *judge) gone(url string) bool {
	if !strings.Contains(url, "going") {
		return false
	}
	j.loads[url]++
	return j.loads[url] > lasting
}
