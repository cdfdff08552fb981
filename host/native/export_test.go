//go:build !js

package native

// Pending is the number of keys that have a time.
func (a *Alarms) Pending() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, al := range a.byKey {
		if !al.at.IsZero() {
			n++
		}
	}
	return n
}
