package tidemark

import "bytes"

// Tokens is a size as a model counts it.
type Tokens int64

// ImageTokens is what an image or an inline document counts, whatever its bytes: Anthropic bills
// width x height / 750 and scales larger images down to about 1,600
// (https://docs.anthropic.com/en/docs/build-with-claude/vision).
const ImageTokens Tokens = 1600

// EstimateChars is the one estimator: 4 characters a token and a fifth on top, as in the paper
// ("Token Estimation"). Characters are UTF-16 units, as JavaScript counts them.
func EstimateChars(chars int) Tokens {
	// ceil(chars / 4 * 1.2) in integers: chars * 3 / 10, rounded up.
	return Tokens((int64(max(chars, 0))*3 + 9) / 10)
}

// EstimateText estimates a text such as a system prompt.
func EstimateText(s string) Tokens { return EstimateChars(UTF16Len(s)) }

// Estimate estimates one message over its JSON; inline data of images counts a flat figure.
func Estimate(m Message) Tokens {
	data, flat := inlineData(m.Content)
	return EstimateChars(UTF16Len(m.AppendJSON(nil))-data) + flat
}

// EstimateBlock estimates one block over its JSON.
func EstimateBlock(b Block) Tokens {
	data, flat := inlineData([]Block{b})
	return EstimateChars(UTF16Len(b.AppendJSON(nil))-data) + flat
}

// inlineData returns the characters of inline base64 in blocks and what they count instead.
func inlineData(blocks []Block) (chars int, flat Tokens) {
	for _, b := range blocks {
		// A document of plain text or of blocks counts as the words that it is.
		if b.Source != nil && b.Source.Type != "text" && b.Source.Type != "content" && (b.Type == TypeImage || b.Type == TypeDocument) {
			chars += b.Source.Bytes
			flat += ImageTokens
		}
		c, f := inlineData(b.Content)
		chars, flat = chars+c, flat+f
	}
	return chars, flat
}

// UTF16Len returns the length of UTF-8 text in UTF-16 units.
func UTF16Len[T string | []byte](s T) int {
	n := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x80 || c >= 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0:
			n += 2
		}
	}
	return n
}

// Usage is what a provider reported for one call, in the terms of the Messages API: Input excludes
// what was read from or written to the cache. OpenAI's prompt tokens include the cached ones; its
// provider subtracts them.
type Usage struct {
	Input         Tokens `json:"input_tokens"`
	CacheRead     Tokens `json:"cache_read_input_tokens,omitempty"`
	CacheCreation Tokens `json:"cache_creation_input_tokens,omitempty"`
	Output        Tokens `json:"output_tokens"`
}

// Context returns the size of the context after the call: all that was sent and what came back.
func (u Usage) Context() Tokens { return u.Input + u.CacheRead + u.CacheCreation + u.Output }

// Add returns the sum of two usages: what several calls cost, never the size of a context.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheCreation + v.CacheCreation, u.Output + v.Output}
}

// UTF16LenJSON returns the length in UTF-16 units of the text of a JSON string, given without its quotes, or of any valid
// JSON in which an escape counts as the character that it means.
func UTF16LenJSON(raw []byte) int {
	n := UTF16Len(raw)
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 {
			return n
		}
		size := len(`\n`)
		if raw[k+1] == 'u' {
			size = len(`\u0000`)
		}
		n -= size - 1
		raw = raw[k+size:]
	}
}
