package telegram

import (
	"strconv"
	"strings"
)

// place is where messages go: a chat, and in a forum one of its topics. As the peer of an address it
// is "-1001234", with a topic "-1001234/7".
type place struct{ chat, thread int64 }

// String writes it as the peer of an address.
func (p place) String() string {
	s := strconv.FormatInt(p.chat, 10)
	if p.thread != 0 {
		s += "/" + strconv.FormatInt(p.thread, 10)
	}
	return s
}

// parsePlace reads the peer of an address.
func parsePlace(peer string) (place, bool) {
	chat, thread, topic := strings.Cut(peer, "/")
	var p place
	var err error
	if p.chat, err = strconv.ParseInt(chat, 10, 64); err != nil || p.chat == 0 {
		return place{}, false
	}
	if topic {
		if p.thread, err = strconv.ParseInt(thread, 10, 64); err != nil || p.thread <= 0 {
			return place{}, false
		}
	}
	return p, true
}

// messageID names a message among all chats: its own number counts within one.
func messageID(chat, message int64) string {
	return strconv.FormatInt(chat, 10) + ":" + strconv.FormatInt(message, 10)
}

// numberIn is the number of a message in a chat; 0 when it is of another, or no id of ours.
func numberIn(chat int64, id string) int64 {
	in, number, ok := strings.Cut(id, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || in != strconv.FormatInt(chat, 10) {
		return 0
	}
	return n
}
