package tidemarktest

import (
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
)

func TestCourier(t *testing.T) {
	Couriers(t, &Courier{Most: 40}, tidemark.Address{Platform: "fake", Peer: "ann"}, 40, utf8.RuneCountInString)
}

func FuzzCourierParts(f *testing.F) {
	f.Add("hello\n\nworld", 5)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most = most&63 + 1; utf8.ValidString(text) {
			CheckParts(t, &Courier{Most: most}, tidemark.Address{Platform: "fake", Peer: "ann"}, most, utf8.RuneCountInString, text)
		}
	})
}
