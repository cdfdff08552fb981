package reset

import "time"

// Next is Alarm without a wait behind the hour.
func Next(p Policy, last, now time.Time) time.Time { return next(p, last, now, 0) }
