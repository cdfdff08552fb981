package logs

import (
	"io"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/picture"
)

// visionTokens is what the API counts for an image of that many pixels
// (https://platform.claude.com/docs/en/build-with-claude/vision): width x height / 750; larger ones are scaled down to
// about 1,600. One whose size is not known counts the most.
func visionTokens(width, height int) tidemark.Tokens {
	const pixels = 750
	if width <= 0 || height <= 0 {
		return tidemark.ImageTokens
	}
	return min(tidemark.ImageTokens, tidemark.Tokens((int64(width)*int64(height)+pixels-1)/pixels))
}

// imageTokens is what an image counts whose base64 r gives.
func imageTokens(r io.Reader) (tidemark.Tokens, error) {
	const head = (picture.HeadBytes/3 + 1) * 4
	data, err := io.ReadAll(io.LimitReader(r, head))
	return visionTokens(picture.OfBase64(data)), err
}
