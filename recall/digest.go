package recall

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of a digest. A filter has at least 12 bits a term and 8 probes, so that it takes one term in 300
// for one that it holds, mostly fewer: sizes are powers of two.
const (
	DigestMessages = 1000 // a part of a conversation ends with so many messages
	DigestTerms    = 2048 // or with the message that brings it to so many different terms
	bitsATerm      = 12
	probes         = 8
	minLog, maxLog = 8, 17 // of the bits: 32 bytes to 16 KB
	digestVersion  = 1
	maxDigestCount = 1 << 40 // of messages and of terms: what is beyond is no digest of ours
)

// Digest says which terms a stretch of a conversation may hold, in a few KB: a filter that takes some terms
// for held that are not, and never one that it holds for missing. Its zero value holds nothing.
type Digest struct {
	Messages int
	Terms    int       // how many different ones, about
	Since    time.Time // of the earliest message, to the millisecond
	Until    time.Time // of the latest
	filter   []byte    // of a length that is a power of two
}

// DigestBuilder collects the terms of messages until they make a [Digest]. Its zero value is empty.
type DigestBuilder struct {
	messages int
	since    time.Time
	until    time.Time
	hashes   []uint32 // the first sorted of them are in order, each once
	sorted   int
}

// Add takes up the terms of a message.
func (b *DigestBuilder) Add(terms []string, at time.Time) {
	at = at.Truncate(time.Millisecond).UTC()
	if b.messages == 0 || at.Before(b.since) {
		b.since = at
	}
	if b.messages == 0 || at.After(b.until) {
		b.until = at
	}
	b.messages++
	for _, t := range terms {
		b.hashes = append(b.hashes, termHash(t))
	}
	if len(b.hashes) >= 2*b.sorted+64 {
		b.tidy()
	}
}

// Full reports whether the part should end here.
func (b *DigestBuilder) Full() bool {
	if b.messages < DigestMessages && len(b.hashes) >= DigestTerms {
		b.tidy()
	}
	return b.messages >= DigestMessages || len(b.hashes) >= DigestTerms
}

// Messages is how many were taken up.
func (b *DigestBuilder) Messages() int { return b.messages }

func (b *DigestBuilder) tidy() {
	slices.Sort(b.hashes)
	b.hashes = slices.Compact(b.hashes)
	b.sorted = len(b.hashes)
}

// Build returns the digest of what was added so far.
func (b *DigestBuilder) Build() Digest {
	b.tidy()
	size := min(max(bits.Len(uint(len(b.hashes)*bitsATerm)), minLog), maxLog)
	d := Digest{Messages: b.messages, Terms: len(b.hashes), Since: b.since, Until: b.until, filter: make([]byte, 1<<size/8)}
	for _, h := range b.hashes {
		d.set(h)
	}
	return d
}

// termHash is what a filter knows of a term. A change of it is a new version of the encoding.
func termHash(term string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(term))
	return mix(h.Sum32())
}

// mix spreads what differs over all bits.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// probe yields the bits of a term. They are counted modulo the size, so that a filter written twice behind
// itself is the same filter at twice the size: see Merge.
func probe(h uint32, i int) uint32 { return h + uint32(i)*(mix(h+0x9e3779b9)|1) }

func (d Digest) set(h uint32) {
	mask := uint32(len(d.filter)*8 - 1)
	for i := range probes {
		p := probe(h, i) & mask
		d.filter[p/8] |= 1 << (p % 8)
	}
}

// MayHold tells for each of up to 64 terms, a bit each from the lowest, whether a message of the stretch may
// have it. A term that was added is never denied.
func (d Digest) MayHold(terms []string) uint64 {
	var out uint64
	if len(d.filter) == 0 {
		return 0
	}
	mask := uint32(len(d.filter)*8 - 1)
	for n, t := range terms[:min(len(terms), 64)] {
		h, held := termHash(t), true
		for i := 0; i < probes && held; i++ {
			p := probe(h, i) & mask
			held = d.filter[p/8]&(1<<(p%8)) != 0
		}
		if held {
			out |= 1 << n
		}
	}
	return out
}

// Covers reports whether a message of the stretch may be of a time; a zero bound is open.
func (d Digest) Covers(since, until time.Time) bool {
	return d.Messages > 0 && (since.IsZero() || !d.Until.Add(time.Millisecond).Before(since)) && (until.IsZero() || !d.Since.After(until))
}

// Merge returns the digest of two stretches. It takes more terms for held than both, since its filter is no
// larger than the larger of theirs.
func Merge(a, b Digest) Digest {
	if a.Messages == 0 {
		return b
	}
	if b.Messages == 0 {
		return a
	}
	if len(a.filter) < len(b.filter) {
		a.filter, b.filter = b.filter, a.filter
	}
	out := Digest{Messages: a.Messages + b.Messages, Terms: a.Terms + b.Terms, Since: a.Since, Until: a.Until, filter: slices.Clone(a.filter)}
	if b.Since.Before(out.Since) {
		out.Since = b.Since
	}
	if b.Until.After(out.Until) {
		out.Until = b.Until
	}
	for i := range out.filter {
		out.filter[i] |= b.filter[i%len(b.filter)]
	}
	return out
}

// Encode writes a digest; [DecodeDigest] reads it.
func (d Digest) Encode() []byte {
	out := make([]byte, 0, len(d.filter)+32)
	out = append(out, digestVersion)
	out = binary.AppendUvarint(out, uint64(d.Messages))
	out = binary.AppendUvarint(out, uint64(d.Terms))
	out = binary.AppendVarint(out, d.Since.UnixMilli())
	out = binary.AppendVarint(out, d.Until.UnixMilli())
	if len(d.filter) == 0 {
		return append(out, 0)
	}
	out = append(out, byte(bits.TrailingZeros(uint(len(d.filter)*8))))
	return append(out, d.filter...)
}

// DecodeDigest reads what Encode wrote, and keeps part of raw. Anything else is ErrInvalid.
func DecodeDigest(raw []byte) (Digest, error) {
	bad := func(what string) (Digest, error) {
		return Digest{}, fmt.Errorf("decode digest: %s: %w", what, tidemark.ErrInvalid)
	}
	if len(raw) == 0 || raw[0] != digestVersion {
		return bad("version is not known")
	}
	rest := raw[1:]
	var counts [2]uint64
	for i := range counts {
		v, n := binary.Uvarint(rest)
		if n <= 0 || v > maxDigestCount {
			return bad("count")
		}
		counts[i], rest = v, rest[n:]
	}
	var times [2]time.Time
	for i := range times {
		v, n := binary.Varint(rest)
		if n <= 0 || v > 1<<53 || v < -1<<53 {
			return bad("time")
		}
		times[i], rest = time.UnixMilli(v).UTC(), rest[n:]
	}
	if len(rest) == 0 || times[1].Before(times[0]) {
		return bad("cut off")
	}
	d := Digest{Messages: int(counts[0]), Terms: int(counts[1]), Since: times[0], Until: times[1]}
	size, rest := rest[0], rest[1:]
	switch {
	case size == 0 && len(rest) == 0:
		return d, nil
	case size < minLog || size > maxLog || len(rest) != 1<<size/8:
		return bad("filter")
	}
	d.filter = rest
	return d, nil
}

// Rarity is how much a term tells that some of all conversations may hold: nothing when none does.
func Rarity(holders, all int) float64 {
	if holders <= 0 || all <= 0 {
		return 0
	}
	return rarity(float64(all), float64(holders))
}
