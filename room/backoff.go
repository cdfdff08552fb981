package room

import "time"

// Backoff is how long to wait before a call is begun again: what the API asked for, within a
// bound, or 1, 2, 4 seconds.
func Backoff(attempt int, asked time.Duration) time.Duration {
	const most = 30 * time.Second
	if asked > 0 {
		return min(asked, most)
	}
	return min(time.Second<<(attempt-1), most)
}
