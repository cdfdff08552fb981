package body

func (s *scanner) chatKey(key string, seen *uint32) { s.skip() }
func (s *scanner) chatMessages() { s.fail("chat completions are not read yet") }
func chatTool(raw []byte) []byte                    { return raw }
func (w *writer) chatList(plan []outgoing)          {}
