package channel_test

import (
	"errors"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// TestNamed: an owner's slip of the pen makes nobody the owner, and a name in any form is the platform's.
func TestNamed(t *testing.T) {
	for _, row := range []struct{ channel, name, want string }{
		{"whatsapp", "+49 151 2345-6789", "4915123456789"},
		{"whatsapp", "004915123456789", "4915123456789"},
		{"whatsapp", "US.13491208655302741918", "US.13491208655302741918"},
		{"whatsapp", "US.ENT.11815799212886844830", "US.ENT.11815799212886844830"},
		{"whatsapp", "US.9aZ", "US.9aZ"},
		{"whatsapp", "banana", ""},
		{"whatsapp", "US.", ""},
		{"whatsapp", "us.1", ""},
		{"whatsapp", "+49", ""},
		{"whatsapp", "491512", ""},
		{"whatsapp", "1234567890123456", ""},
		{"whatsapp", "", ""},
		{"telegram", "123456789", "123456789"},
		{"telegram", "@ada", ""},
		{"telegram", "+49 151 23456789", ""},
		{"foo", "+4915123456789", ""},
		{"", "+4915123456789", ""},
	} {
		got, err := channel.Named(row.channel, row.name)
		if got != row.want || (row.want == "") != errors.Is(err, tidemark.ErrInvalid) {
			t.Errorf("%s %q: %q, %v; want %q", row.channel, row.name, got, err, row.want)
		}
	}
}
