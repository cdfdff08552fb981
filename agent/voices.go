package agent

import (
	"context"
	"fmt"

	"github.com/tidemark-ai/tidemark"
)

// Voices are what [Errands] are beside, where an agent may look after conversations and speak in them.
type Voices interface {
	// Occupied reports whether a conversation has work. One that is not there has none.
	Occupied(ctx context.Context, key tidemark.Key) (bool, error)
	// Correspondent is where the person who talks there over a channel wrote from last; ErrNotFound when nobody did.
	Correspondent(ctx context.Context, key tidemark.Key) (tidemark.Origin, error)
	// Say sends a text that no model wrote; the same id twice is one.
	Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error
}

// What is asked of voices, behind ErrandPath.
const (
	askOccupied = "occupied"
	askWhere    = "where"
	askSay      = "say"
)

// saying is a text on its way.
type saying struct {
	ID   string           `json:"id"`
	To   tidemark.Address `json:"to"`
	Text string           `json:"text"`
}

var _ Voices = (*FarSessions)(nil)

// Occupied implements [Voices].
func (s *FarSessions) Occupied(ctx context.Context, key tidemark.Key) (bool, error) {
	c, err := s.send(ctx, askOccupied, sent{Key: key})
	return c.Occupied, err
}

// Correspondent implements [Voices].
func (s *FarSessions) Correspondent(ctx context.Context, key tidemark.Key) (tidemark.Origin, error) {
	c, err := s.send(ctx, askWhere, sent{Key: key})
	return c.Origin, err
}

// Say implements [Voices].
func (s *FarSessions) Say(ctx context.Context, key tidemark.Key, id string, to tidemark.Address, text string) error {
	_, err := s.send(ctx, askSay, sent{Key: key, Say: &saying{id, to, text}})
	return err
}

// voice answers what is asked of voices.
func voice(ctx context.Context, what string, q sent, here Errands, out *come) (err error) {
	v, ok := here.(Voices)
	switch {
	case ok && what == askOccupied:
		out.Occupied, err = v.Occupied(ctx, q.Key)
	case ok && what == askWhere:
		out.Origin, err = v.Correspondent(ctx, q.Key)
	case ok && what == askSay && q.Say != nil:
		err = v.Say(ctx, q.Key, q.Say.ID, q.Say.To, q.Say.Text)
	default:
		err = fmt.Errorf("question %.40q: %w", what, tidemark.ErrInvalid)
	}
	return err
}
