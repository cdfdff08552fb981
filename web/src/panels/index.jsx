// The side panel: context, memory, archives.

// Panels is the panel beside the chat. api is the client of ../api.js, session the key of the session
// that is shown, live.subscribe(fn) calls fn with each notice of it and returns what ends that,
// openSession(key) shows another session, onClose is called to close the panel.
export function Panels({ onClose }) {
  return <aside><button type="button" onClick={onClose}>Close</button></aside>;
}
