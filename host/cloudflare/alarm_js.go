package cloudflare

import (
	"context"
	"fmt"
	"time"
)

// SetAlarm arms the object's one alarm; an earlier setting is replaced, the zero time disarms. The
// alarm wakes the object even after its host has dropped it, and may come late.
func (o *Obj) SetAlarm(ctx context.Context, at time.Time) error {
	var ms any
	if !at.IsZero() {
		ms = float64(at.UnixMilli())
	}
	if _, err := o.await(ctx, "setAlarm", ms); err != nil {
		return fmt.Errorf("set alarm: %w", err)
	}
	return nil
}
