// Loading for a component: what is there stays shown while newer is read, an answer that nobody waits for
// any more is dropped.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { join } from "./series.js";

// useLoad calls read(signal) now and whenever deps change; reload() calls it again. A change of deps
// begins with nothing, a reload keeps what is shown.
export function useLoad(read, deps) {
  const [state, set] = useState({ data: undefined, error: null, busy: true });
  const latest = useRef(read);
  latest.current = read;
  const running = useRef(null);
  const run = useCallback(async () => {
    running.current?.abort();
    const own = (running.current = new AbortController());
    set((s) => ({ ...s, busy: true }));
    try {
      const data = await latest.current(own.signal);
      if (!own.signal.aborted) set({ data, error: null, busy: false });
    } catch (error) {
      if (!own.signal.aborted) set((s) => ({ ...s, error, busy: false }));
    }
  }, []);
  useEffect(() => {
    set({ data: undefined, error: null, busy: true });
    run();
    return () => running.current?.abort();
  }, deps);
  return { ...state, reload: run };
}

// usePages reads a list page by page, newest first: read(cursor, signal) gives {items, next}, next is
// empty on the last one. refresh() lays the newest page over what is shown.
export function usePages(read, deps, idOf) {
  const [state, set] = useState({ items: [], next: undefined, error: null, busy: true, begun: false });
  const at = useRef({});
  at.current.read = read;
  at.current.state = state;
  const run = useCallback(async (more) => {
    at.current.running?.abort();
    const own = (at.current.running = new AbortController());
    set((s) => ({ ...s, busy: true }));
    try {
      const page = await at.current.read(more ? at.current.state.next : undefined, own.signal);
      if (own.signal.aborted) return;
      set((s) => {
        if (more) return { next: undefined, ...page, items: [...s.items, ...page.items], error: null, busy: false, begun: true };
        return { next: undefined, ...join(s, page, idOf), error: null, busy: false, begun: true };
      });
    } catch (error) {
      if (!own.signal.aborted) set((s) => ({ ...s, error, busy: false }));
    }
  }, []);
  useEffect(() => {
    set({ items: [], next: undefined, error: null, busy: true, begun: false });
    run(false);
    return () => at.current.running?.abort();
  }, deps);
  return { ...state, refresh: useCallback(() => run(false), []), more: useCallback(() => run(true), []) };
}

// useNotices calls act after a turn or an event of the session, once for several that come together:
// never for each piece of an answer.
export function useNotices(live, act, deps) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    let waiting = 0;
    const end = live?.subscribe?.((notice) => {
      if (!["done", "event", "error", "hello"].includes(notice?.type)) return;
      clearTimeout(waiting);
      waiting = setTimeout(() => latest.current(), 250);
    });
    return () => {
      clearTimeout(waiting);
      end?.();
    };
  }, [live, ...deps]);
}

// useAct runs one action at a time: {busy, error, done, run(fn), clear()}. done is what fn gave.
export function useAct() {
  const [state, set] = useState({ busy: false, error: null, done: undefined });
  const alive = useRef(true);
  const running = useRef(false);
  useEffect(() => () => void (alive.current = false), []);
  const run = useCallback(async (fn) => {
    if (running.current) return undefined;
    running.current = true;
    set({ busy: true, error: null, done: undefined });
    try {
      const done = await fn();
      if (alive.current) set({ busy: false, error: null, done });
      return done;
    } catch (error) {
      if (alive.current) set({ busy: false, error, done: undefined });
      return undefined;
    } finally {
      running.current = false;
    }
  }, []);
  return { ...state, run, clear: useCallback(() => set({ busy: false, error: null, done: undefined }), []) };
}
