package graph

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	linkLife  = 5 * time.Minute
	maxUpload = 100 << 20
	maxMisses = 5 // requests for one medium that is not there, until they are throttled
)

// Spoiled is what may be wrong with a medium.
type Spoiled string

// The ways in which a medium may be spoiled.
const (
	SpoiledBytes     Spoiled = "bytes"     // other bytes than the hash is of
	SpoiledShort     Spoiled = "short"     // cut in the middle
	SpoiledGone      Spoiled = "gone"      // the id has expired
	SpoiledLink      Spoiled = "link"      // the address has expired when it is asked
	SpoiledSlow      Spoiled = "slow"      // never answers
	SpoiledElsewhere Spoiled = "elsewhere" // its address is on another host
	SpoiledLarge     Spoiled = "large"     // said to have 200 MB
)

type medium struct {
	data    []byte
	mime    string
	spoiled Spoiled
	keys    map[string]time.Time // when each address was given
}

// AddMedia keeps a medium, as if a person had sent it, and returns its id.
func (s *Server) AddMedia(data []byte, mime string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	id := strconv.Itoa(770000000000 + s.n)
	s.media[id] = &medium{data: data, mime: mime, keys: map[string]time.Time{}}
	return id
}

// Spoil has something be wrong with a medium from now on; empty for nothing.
func (s *Server) Spoil(id string, how Spoiled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.media[id]; m != nil {
		m.spoiled = how
	}
}

// upload takes a medium of the business.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	file, head, err := r.FormFile("file")
	if err != nil || r.FormValue("messaging_product") != "whatsapp" {
		refuse(w, Fault{Code: 100, Text: "Want a form with messaging_product, type and file."})
		return
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		refuse(w, Fault{Code: 131053, Text: err.Error()})
		return
	}
	answer(w, http.StatusOK, map[string]any{"id": s.AddMedia(data, cmp.Or(r.FormValue("type"), head.Header.Get("Content-Type")))})
}

// describe is the first step of a download.
func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("media")
	if id == s.cfg.Account { // the node of our number: by it people try their token
		answer(w, http.StatusOK, map[string]any{"id": id, "display_phone_number": s.cfg.Number, "verified_name": "Tidemark", "quality_rating": "GREEN"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.media[id]
	if account := r.URL.Query().Get("phone_number_id"); m == nil || m.spoiled == SpoiledGone || account != "" && account != s.cfg.Account {
		if s.failed[id]++; s.failed[id] > maxMisses {
			refuse(w, Fault{Code: 80007, Status: http.StatusTooManyRequests, RetryAfter: 60})
			return
		}
		refuse(w, Fault{Code: 100, Subcode: 33, Text: "Unsupported get request. Object with ID '" + id + "' does not exist"})
		return
	}
	s.n++
	key := fmt.Sprintf("k%dz", s.n)
	m.keys[key] = s.cfg.Now()
	sum := sha256.Sum256(m.data)
	size, at := len(m.data), s.cfg.Files+"/files/"+id+"/"+key
	switch m.spoiled {
	case SpoiledElsewhere:
		at = "https://media.example.test/" + id
	case SpoiledLarge:
		size = 200 << 20
	}
	answer(w, http.StatusOK, map[string]any{
		"messaging_product": "whatsapp", "id": id, "url": at,
		"mime_type": m.mime, "sha256": hex.EncodeToString(sum[:]), "file_size": size,
	})
}

// download is the second step: the token is asked for again.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	m := s.media[r.PathValue("media")]
	var given time.Time
	var spoiled Spoiled
	if m != nil {
		given, spoiled = m.keys[r.PathValue("key")], m.spoiled
	}
	now := s.cfg.Now()
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.cfg.Token:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case m == nil || spoiled == SpoiledLink || now.Sub(given) >= linkLife:
		w.WriteHeader(http.StatusNotFound)
		return
	case spoiled == SpoiledSlow:
		s.spoil(w, r, Fault{Mode: Slow})
	}
	data := m.data
	if spoiled == SpoiledBytes {
		data = bytes.Repeat([]byte{0xA5}, len(data))
	}
	w.Header().Set("Content-Type", m.mime)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if spoiled == SpoiledShort {
		data = data[:len(data)/2]
	}
	_, _ = w.Write(data) // whoever asked has gone
	if spoiled == SpoiledShort {
		_ = http.NewResponseController(w).Flush() // the cut is what matters
		panic(http.ErrAbortHandler)
	}
}
