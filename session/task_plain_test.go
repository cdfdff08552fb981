package session

import "testing"

// plainSentences are what people say in passing and in earnest, and what a card makes of it.
var plainSentences = map[string]string{
	"Help me find a flat in Kiel.":           "goal",
	"Read the attached report.":              "goal",
	"Show me the log of yesterday.":          "goal",
	"Order the nails for the roof.":          "goal",
	"I need a new chain for the gate.":       "goal",
	"Let's build a small jetty.":             "goal",
	"Never deploy if I don't have a backup.": "rule",
	"Don’t book the flight.":                 "rule",
	"We do not email the client.":            "rule",
	"We can do the roof later.":              "loop",
	"Help!":                                  "",
	"Update: it works now.":                  "",
	"Support told me to wait.":               "",
	"Plan B worked.":                         "",
	"I have to go now.":                      "",
	"I don't have time today.":               "",
	"I don’t know.":                          "",
	"I don't like the rain.":                 "",
	"It rained, as always.":                  "",
	"Book club is on Tuesday.":               "",
	"See you later!":                         "",

	"Hol das Paket bei Ann ab.":             "goal",
	"Füg die Rechnung an.":                  "goal",
	"Setz den Termin auf Montag.":           "goal",
	"Leg die Akte ins Archiv.":              "goal",
	"Ich brauche Hilfe beim Umzug.":         "goal",
	"Ich möchte einen Liegeplatz mieten.":   "goal",
	"Wir müssen jetzt die Brücke sanieren.": "goal",
	"Frage mich immer vorher.":              "rule",
	"Lösche niemals die Backups.":           "rule",
	"Das machen wir später.":                "loop",
	"Ich rufe später bei Ann an.":           "loop",
	"Ich muss los.":                         "",
	"Ich muss jetzt leider schlafen.":       "",
	"Ich will nicht.":                       "",
	"Ich möchte mich bedanken.":             "",
	"Wir müssen reden.":                     "",
	"Suche läuft.":                          "",
	"Es regnet immer noch.":                 "",
	"Wie immer war die Brücke gesperrt.":    "",
	"Bis später!":                           "",
	"Ich kam zwei Tage später an.":          "",
	"He came back two days later.":          "",
}

// TestPlainSentences: a card takes up what is wanted, ruled or left for later, and nothing of talk.
func TestPlainSentences(t *testing.T) {
	for line, want := range plainSentences {
		got := ""
		switch _, how := asksFor(line); {
		case len(rules(line)) > 0:
			got = "rule"
		case leftOpen(line):
			got = "loop"
		case how > noAim:
			got = "goal"
		}
		if got != want {
			t.Errorf("%q is a %q, want %q", line, got, want)
		}
	}
}
