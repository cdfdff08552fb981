package bench

import (
	"context"
	"fmt"
	"math"

	"github.com/tidemark-ai/tidemark/recall"
	roomvectors "github.com/tidemark-ai/tidemark/room/vectors"
)

const (
	embedBatch = 32
	standMost  = 16 // as a session has it
)

// vectors are those of a conversation's turns.
type vectors struct {
	by    roomvectors.Embedder
	turns [][]float32
	ids   []string
}

// vectorsOf has an endpoint make the vectors of a conversation; nil without one.
func vectorsOf(ctx context.Context, c Conversation, by roomvectors.Embedder) (*vectors, error) {
	if by == nil {
		return nil, nil
	}
	v := &vectors{by: by}
	var texts []string
	for _, t := range c.Turns {
		texts, v.ids = append(texts, t.Speaker+": "+t.Text), append(v.ids, t.ID)
	}
	for len(texts) > 0 {
		n := min(len(texts), embedBatch)
		made, err := by.Embed(ctx, texts[:n])
		if err != nil {
			return nil, fmt.Errorf("vectors of conversation %s: %w", c.Name, err)
		}
		v.turns, texts = append(v.turns, made...), texts[n:]
	}
	return v, nil
}

// fuse puts what stands out for a question among the hits of its words.
func (v *vectors) fuse(ctx context.Context, x *recall.Index, q recall.Query, hits []recall.Hit) ([]recall.Hit, error) {
	if v == nil || x.Judge(q, hits) == recall.Confident { // as a session does
		return hits, nil
	}
	made, err := v.by.Embed(ctx, []string{q.Text})
	if err != nil || len(made) != 1 {
		return nil, fmt.Errorf("vector of %q: %d came: %w", q.Text, len(made), err)
	}
	likeness := make([]float64, len(v.turns))
	for i, t := range v.turns {
		likeness[i] = cosine(made[0], t)
	}
	near := map[string]recall.Stand{}
	for i, st := range recall.Standing(likeness, standMost) {
		near[v.ids[i]] = st
	}
	return x.Fuse(hits, near), nil
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range min(len(a), len(b)) {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Max(math.Sqrt(aa*bb), 1e-12)
}
